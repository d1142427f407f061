# A container with the command `eqsat`. docs/deployment.md shows its use.
FROM python:3.12-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir /wheels/eqsat-*.whl
RUN useradd --create-home eqsat
USER eqsat
WORKDIR /models
ENTRYPOINT ["eqsat"]

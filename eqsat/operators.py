"""Operators: their schema, their semantic version, and whether they are pure.

`find_operator` takes a domain, a name and the opset that a model imports. It returns an `Operator`.
An operator without a schema is opaque: it stays as written and is never merged or folded, unless
this module declares it pure.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import onnx
from onnx import AttributeProto, defs, helper

from eqsat.contributed import contributed_schema
from eqsat.frozen import frozen

# Tensors, graphs and types stay protobuf messages; other values become plain Python data.
AttributeValue: TypeAlias = int | float | bytes | tuple[int, ...] | tuple[float, ...] | tuple[bytes, ...] | onnx.AttributeProto
Attributes: TypeAlias = Mapping[str, AttributeValue]

# Operators that draw random numbers, including those of ONNX Runtime. Dropout draws them only in
# training mode.
RANDOM = frozenset(
    "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial BiasDropout BitmaskDropout BitmaskBiasDropout Sampling".split()
)

# Operators with bodies are as pure as their bodies; the reader of the body decides.
STANDARD_DOMAINS = frozenset({"", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training"})
"""The domains of onnx, whose schemas it has."""

# ONNX Runtime's own operators that are pure functions of their inputs. The list lacks operators
# that draw random numbers, run user code or use other devices.
_PURE_CONTRIB = frozenset(
    """
    Attention BiasAdd BiasGelu BiasSoftmax BiasSplitGelu BifurcationDetector CDist ComplexMul ComplexMulConj
    ConvTransposeWithDynamicPads CropAndResize DecoderAttention DecoderMaskedMultiHeadAttention DecoderMaskedSelfAttention
    DequantizeBFP DequantizeLinear DequantizeWithOrder DynamicQuantizeLSTM DynamicQuantizeMatMul EmbedLayerNormalization
    ExpandDims FastGelu FusedConv FusedGemm FusedMatMul FusedMatMulActivation GatedRelativePositionBias
    GatherBlockQuantized GatherND Gelu GemmFastGelu GridSample GroupNorm GroupQueryAttention Inverse Irfft
    LongformerAttention MatMulBnb4 MatMulFpQ4 MatMulInteger16 MatMulIntegerToFloat MatMulNBits MaxpoolWithMask
    MulInteger MultiHeadAttention MurmurHash3 NGramRepeatBlock NhwcConv NhwcFusedConv NhwcMaxPool PackedAttention
    PackedMultiHeadAttention Pad QAttention QGemm QLinearAdd QLinearAveragePool QLinearConcat QLinearConv
    QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul QLinearReduceMean QLinearSigmoid QLinearSoftmax QLinearWhere
    QMoE QOrderedAttention QOrderedGelu QOrderedLayerNormalization QOrderedLongformerAttention QOrderedMatMul
    QuantizeBFP QuantizeLinear QuantizeWithOrder QuickGelu Range ReduceSumInteger RelativePositionBias RemovePadding
    RestorePadding Rfft RotaryEmbedding SimplifiedLayerNormalization SkipGroupNorm SkipLayerNormalization
    SkipSimplifiedLayerNormalization SparseAttention SparseToDenseMatMul Tokenizer TorchEmbedding TransposeMatMul
    Trilu UnfoldTensor Unique WordConvEmbedding
    BiasFastGeluGrad_dX BiasGeluGrad_dX BroadcastGradientArgs ConcatTraining LayerNormalizationGrad SliceGrad SoftmaxGrad_13
    """.split()
)
_PURE_LAYOUT_DOMAINS = frozenset({"com.microsoft.nchwc", "com.ms.internal.nhwc"})


_NEWEST = (1 << 31) - 1  # onnx accepts no larger opset number

_TYPES = defs.OpSchema.AttrType
_KINDS: dict[defs.OpSchema.AttrType, int] = {
    _TYPES.INT: AttributeProto.INT,
    _TYPES.INTS: AttributeProto.INTS,
    _TYPES.FLOAT: AttributeProto.FLOAT,
    _TYPES.FLOATS: AttributeProto.FLOATS,
    _TYPES.STRING: AttributeProto.STRING,
    _TYPES.STRINGS: AttributeProto.STRINGS,
}


@frozen(slots=False)
class Operator:
    """An operator as a model imports it.

    `version` is the schema's since_version, 0 without a schema.
    """

    domain: str
    name: str
    version: int
    opset: int
    pure: bool
    schema: defs.OpSchema | None = None

    def __hash__(self) -> int:
        return hash(self.name)  # few operators share a name, and a text remembers its hash

    # Purity is not compared: an impure node's terms have an identity of their own in the signature.
    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Operator) and self.key == other.key and self.opset == other.opset)

    # A schema cannot be pickled; the receiver finds its own.
    def __reduce__(self) -> tuple[Callable[..., Operator | None], tuple[str, str, int] | tuple[str, str]]:
        if self.contributed:
            return contributed_operator, (self.domain, self.name)
        return find_operator, (self.domain, self.name, self.opset)

    @functools.cached_property
    def key(self) -> tuple[str, str, int]:
        return (self.domain, self.name, self.version)

    @functools.cached_property
    def standard(self) -> bool:
        """Tell whether this is an operator of the ONNX standard (the default domain)."""
        return self.domain == "" and self.schema is not None

    @functools.cached_property
    def contributed(self) -> bool:
        """Tell whether this is an operator of a runtime's own domain, as rules know it."""
        return self.schema is not None and self.domain not in STANDARD_DOMAINS

    @functools.cached_property
    def ruled(self) -> bool:
        """Tell whether rules and the tables of operators, which go by name, may know it."""
        return self.standard or self.contributed

    @functools.cached_property
    def formals(self) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
        """The names and types of the formal inputs and outputs; a schema makes them anew each time."""
        if self.schema is None:
            return (), ()
        inputs, outputs = (tuple([(formal.name, formal.type_str) for formal in formals]) for formals in (self.schema.inputs, self.schema.outputs))
        return inputs, outputs

    def __str__(self) -> str:
        return f"{self.full_name}-{self.version}" if self.version else self.full_name

    @functools.cached_property
    def full_name(self) -> str:
        """The name with its domain, as `full_name` writes it."""
        return full_name(self.domain, self.name)


def full_name(domain: str, name: str) -> str:
    """Return the name of an operator with its domain: "Conv", "com.microsoft.FusedConv"."""
    return f"{domain}.{name}" if domain else name


def normal_domain(domain: str) -> str:
    """Return the canonical name of a domain: `ai.onnx` is the default domain."""
    return "" if domain == "ai.onnx" else domain


@functools.lru_cache(maxsize=8192)
def find_operator(domain: str, name: str, opset: int) -> Operator:
    """Return the operator that `domain` and `name` mean in a model that imports `opset`."""
    domain = normal_domain(domain)
    schema = None
    if domain in STANDARD_DOMAINS:
        try:
            schema = defs.get_schema(name, max_inclusive_version=max(1, min(opset, _NEWEST)), domain=domain)
        except defs.SchemaError:
            schema = None
        if schema is not None and schema.deprecated:
            schema = None
    if schema is not None:
        pure = name not in RANDOM
    else:
        pure = (domain == "com.microsoft" and name in _PURE_CONTRIB) or domain in _PURE_LAYOUT_DOMAINS
    return Operator(domain, name, schema.since_version if schema else 0, opset, pure, schema)


@functools.lru_cache(maxsize=1024)
def contributed_operator(domain: str, name: str) -> Operator | None:
    """Return an operator of a runtime's own domain as rules know it, with its schema.

    Models spell it by an operator without a schema, which `find_operator` returns. Only a run that
    is allowed to use the domain reads one as the other. Return None for any other operator.
    """
    schema = contributed_schema(domain, name)
    return None if schema is None else Operator(domain, name, schema.since_version, schema.since_version, True, schema)


@functools.lru_cache(maxsize=1024)
def attribute_spellings(domain: str, name: str) -> frozenset[str]:
    """Return the attributes that an operator has or had in any version."""
    spellings: set[str] = set()
    version = defs.onnx_opset_version()
    while version > 0:
        try:
            schema = defs.get_schema(name, max_inclusive_version=version, domain=domain)
        except defs.SchemaError:
            break
        spellings.update(schema.attributes)
        version = schema.since_version - 1
    return frozenset(spellings)


def attribute_value(attribute: onnx.AttributeProto) -> AttributeValue:
    """Return an attribute's value in normal form; tensors, graphs and references stay messages."""
    if attribute.ref_attr_name:
        return attribute
    kind = attribute.type
    if kind == onnx.AttributeProto.INT:
        return attribute.i
    if kind == onnx.AttributeProto.FLOAT:
        return attribute.f
    if kind == onnx.AttributeProto.STRING:
        return attribute.s
    if kind == onnx.AttributeProto.INTS:
        return tuple(attribute.ints)
    if kind == onnx.AttributeProto.FLOATS:
        return tuple(attribute.floats)
    if kind == onnx.AttributeProto.STRINGS:
        return tuple(attribute.strings)
    return attribute


@functools.lru_cache(maxsize=8192)
def _defaults(key: Operator) -> dict[str, AttributeValue]:
    if key.schema is None:
        return {}
    return {
        name: attribute_value(attribute.default_value)
        for name, attribute in sorted(key.schema.attributes.items())
        if attribute.default_value.type != onnx.AttributeProto.UNDEFINED
    }


def read_attributes(operator: Operator, attributes: Iterable[onnx.AttributeProto]) -> dict[str, AttributeValue]:
    """Return all attributes of a node, ordered by name; omitted ones have their defaults."""
    return with_defaults(operator, {attribute.name: attribute_value(attribute) for attribute in attributes})


def with_defaults(operator: Operator, attributes: Attributes) -> dict[str, AttributeValue]:
    """Return attributes ordered by name, with the defaults of omitted ones."""
    defaults = _defaults(operator)
    found = {**defaults, **attributes}
    # The defaults are in order, and another value does not move a name.
    return found if len(found) == len(defaults) else dict(sorted(found.items()))


def to_attribute(operator: Operator, name: str, value: AttributeValue | str | tuple[str, ...]) -> AttributeProto:
    """Make an attribute of the type in the schema, because an empty list does not show its type."""
    if isinstance(value, AttributeProto):
        return value
    declared = None if operator.schema is None else operator.schema.attributes.get(name)
    kind = None if declared is None else _KINDS.get(declared.type)
    return AttributeProto(name=name) if kind is None and value == () else helper.make_attribute(name, value, attr_type=kind)


def to_attributes(operator: Operator, values: Mapping[str, AttributeValue | None]) -> list[AttributeProto]:
    """Return the attributes of a node, without absent values and defaults."""
    return [to_attribute(operator, name, value) for name, value in values.items() if value is not None and not omitted(operator, name, value)]


# ONNX's own inference refuses nodes that omit these attributes, although they have defaults.
_STATED = frozenset({("MeanVarianceNormalization", "axes")})


def omitted(operator: Operator, name: str, value: AttributeValue) -> bool:
    """Tell whether a node may omit this value of an attribute."""
    return _defaults(operator).get(name) == value and (operator.name, name) not in _STATED


def attribute_default(operator: Operator, name: str) -> AttributeValue | None:
    """Return the meaning of an omitted attribute; None if the schema has none."""
    return _defaults(operator).get(name)


def outputs_matter(operator: Operator) -> bool:
    """Tell whether the outputs that a node names may change its computation."""
    schema = operator.schema
    if schema is None or not operator.pure:
        return True
    if operator.version < {"BatchNormalization": 14, "Dropout": 12}.get(operator.name, 0):
        return True  # naming further outputs selected training mode in old opsets
    return bool(schema.outputs) and schema.outputs[-1].option == defs.OpSchema.FormalParameterOption.Variadic


def may_train(operator: Operator, attributes: Attributes, inputs: int, outputs: int) -> bool:
    """Tell whether a node is in training mode, or an input may put it there.

    In training mode a node draws random numbers or updates statistics.
    """
    if not operator.standard:
        return False
    if operator.name == "Dropout":
        return inputs > 2 if operator.version >= 12 else operator.version < 7 and attributes.get("is_test", 0) == 0
    if operator.name == "BatchNormalization":
        if operator.version >= 14:
            return attributes.get("training_mode", 0) != 0
        return outputs > 1 or (operator.version < 7 and attributes.get("is_test", 0) == 0)
    return False

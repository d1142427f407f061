"""Architectures: the models of the zoo before export, each with the description of its inputs.

All come from `transformers` with random weights, so nothing is downloaded. Text models and vision
transformers have few and narrow layers, so that they run in milliseconds on one core. ResNet-50,
MobileNetV2 and EfficientNet-B0 have their true sizes, and so have the three that are exported only by
name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.inputs import Description, Input, Meaning

torch: Any = importlib.import_module("torch")
transformers: Any = importlib.import_module("transformers")

VOCABULARY = 1000
WIDTH = 256
HEADS = 4
LAYERS = 4

# torch 2.13's dynamo exporter refuses scaled_dot_product_attention with a bias, because its result
# has other strides than the traced one.
EAGER = {"attn_implementation": "eager"}


@dataclass(frozen=True)
class Architecture:
    """A model and its inputs. `build` makes the module, whose `forward` takes the inputs in order."""

    build: Callable[[], Any]
    inputs: dict[str, Input]
    sizes: dict[str, int]
    large: bool = False  # exported only by name

    def description(self, dynamic: bool, made_by: dict[str, str]) -> Description:
        """Returns the inputs with their symbolic sizes, or with their values for a static model."""
        if dynamic:
            return Description(self.inputs, self.sizes, made_by)
        static = {
            name: Input(value.dtype, tuple(1 if size == "batch" else self.sizes.get(str(size), size) for size in value.shape), value.meaning, value.bound)
            for name, value in self.inputs.items()
        }
        return Description(static, {}, made_by)


class Function(torch.nn.Module):
    """A model as a function from tensors in order to one tensor: the field `output` of the result."""

    def __init__(self, model: Any, output: str = "logits") -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.model = model
        self.output = output


class Text(Function):
    """A text model as a function of token identifiers and of the mask of present tokens."""

    def forward(self, input_ids: Any, attention_mask: Any) -> Any:
        return getattr(self.model(input_ids=input_ids, attention_mask=attention_mask), self.output)


class Decoder(Function):
    """A language model without a cache of past tokens."""

    def forward(self, input_ids: Any, attention_mask: Any) -> Any:
        return getattr(self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False), self.output)


class Vision(Function):
    """An image model as a function of the pixels."""

    def forward(self, pixel_values: Any) -> Any:
        return getattr(self.model(pixel_values=pixel_values), self.output)


class Speech(Function):
    """The encoder of a speech model as a function of a spectrogram."""

    def forward(self, input_features: Any) -> Any:
        return getattr(self.model(input_features=input_features), self.output)


def text(build: Callable[[], Any], sequence: int = 128) -> Architecture:
    tokens = Input("int64", ("batch", "sequence"), Meaning.INDICES, VOCABULARY)
    mask = Input("int64", ("batch", "sequence"), Meaning.MASK)
    return Architecture(build, {"input_ids": tokens, "attention_mask": mask}, {"batch": 2, "sequence": sequence})


def vision(build: Callable[[], Any], size: int = 224) -> Architecture:
    pixels = Input("float32", ("batch", 3, size, size), Meaning.FEATURES)
    return Architecture(build, {"pixel_values": pixels}, {"batch": 2})


def bert() -> Any:
    config = transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=4 * WIDTH, max_position_embeddings=256
    )
    return Text(transformers.BertModel(config), "pooler_output")


def distilbert() -> Any:
    config = transformers.DistilBertConfig(vocab_size=VOCABULARY, dim=WIDTH, n_layers=3, n_heads=HEADS, hidden_dim=4 * WIDTH, max_position_embeddings=256)
    return Text(transformers.DistilBertModel(config), "last_hidden_state")


def gpt2() -> Any:
    config = transformers.GPT2Config(vocab_size=VOCABULARY, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_positions=256, bos_token_id=0, eos_token_id=0)
    return Decoder(transformers.GPT2LMHeadModel(config))


def llama() -> Any:
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS // 2,
        intermediate_size=2 * WIDTH,
        max_position_embeddings=256,
    )
    return Decoder(transformers.LlamaForCausalLM(config))


def t5_encoder() -> Any:
    config = transformers.T5Config(vocab_size=VOCABULARY, d_model=WIDTH, d_kv=WIDTH // HEADS, d_ff=4 * WIDTH, num_layers=LAYERS, num_heads=HEADS, **EAGER)
    return Text(transformers.T5EncoderModel(config), "last_hidden_state")


def deberta() -> Any:
    config = transformers.DebertaV2Config(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=4 * WIDTH,
        max_position_embeddings=256,
        relative_attention=True,
        position_buckets=32,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
    )
    return Text(transformers.DebertaV2Model(config), "last_hidden_state")


def whisper_encoder() -> Any:
    config = transformers.WhisperConfig(
        vocab_size=VOCABULARY,
        d_model=WIDTH,
        encoder_layers=LAYERS,
        decoder_layers=1,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=4 * WIDTH,
        max_source_positions=150,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    return Speech(transformers.WhisperModel(config).encoder, "last_hidden_state")


def vit() -> Any:
    config = transformers.ViTConfig(hidden_size=192, num_hidden_layers=LAYERS, num_attention_heads=3, intermediate_size=768, num_labels=100)
    return Vision(transformers.ViTForImageClassification(config))


def swin() -> Any:
    config = transformers.SwinConfig(embed_dim=48, depths=[2, 2, 2, 2], num_heads=[2, 4, 8, 16], window_size=7, num_labels=100, **EAGER)
    return Vision(transformers.SwinForImageClassification(config))


def convnext() -> Any:
    config = transformers.ConvNextConfig(hidden_sizes=[48, 96, 192, 384], depths=[1, 1, 3, 1], num_labels=100)
    return Vision(transformers.ConvNextForImageClassification(config))


def segformer() -> Any:
    config = transformers.SegformerConfig(
        depths=[1, 1, 2, 1], hidden_sizes=[16, 32, 64, 128], num_attention_heads=[1, 2, 4, 8], decoder_hidden_size=64, num_labels=20
    )
    return Vision(transformers.SegformerForSemanticSegmentation(config))


def mobilevit() -> Any:
    config = transformers.MobileViTConfig(image_size=128, hidden_sizes=[48, 64, 80], neck_hidden_sizes=[16, 16, 24, 48, 64, 80, 320], num_labels=100)
    return Vision(transformers.MobileViTForImageClassification(config))


def resnet50() -> Any:
    return Vision(transformers.ResNetForImageClassification(transformers.ResNetConfig(num_labels=1000)))


def mobilenetv2() -> Any:
    return Vision(transformers.MobileNetV2ForImageClassification(transformers.MobileNetV2Config(num_labels=1001)))


def efficientnet() -> Any:
    config = transformers.EfficientNetConfig(image_size=224, width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=1280, num_labels=1000)
    return Vision(transformers.EfficientNetForImageClassification(config))


def bert_base() -> Any:
    return Text(transformers.BertModel(transformers.BertConfig()), "pooler_output")


def vit_base() -> Any:
    return Vision(transformers.ViTForImageClassification(transformers.ViTConfig(num_labels=1000)))


def llama_16() -> Any:
    config = transformers.LlamaConfig(hidden_size=1024, num_hidden_layers=16, num_attention_heads=16, num_key_value_heads=4, intermediate_size=2816)
    return Decoder(transformers.LlamaForCausalLM(config))


SPECTROGRAM = Input("float32", ("batch", 80, 300), Meaning.FEATURES)

ARCHITECTURES = {
    "bert": text(bert),
    "bert-base": replace(text(bert_base), large=True),
    "convnext": vision(convnext),
    "deberta": text(deberta, 64),
    "distilbert": text(distilbert),
    "efficientnet": vision(efficientnet),
    "gpt2": text(gpt2, 64),
    "llama": text(llama, 64),
    "llama-16": replace(text(llama_16), large=True),
    "mobilenetv2": vision(mobilenetv2),
    "mobilevit": vision(mobilevit, 128),
    "resnet50": vision(resnet50),
    "segformer": vision(segformer, 128),
    "swin": vision(swin),
    "t5enc": text(t5_encoder, 64),
    "vit": vision(vit),
    "vit-base": replace(vision(vit_base), large=True),
    "whisperenc": Architecture(whisper_encoder, {"input_features": SPECTROGRAM}, {"batch": 2}),
}

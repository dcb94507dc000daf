"""A model folder with a tokenizer of bytes and the ChatML template of Qwen, for trainers that load one: nothing is downloaded."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = """\
{%- if tools %}
{{- '<|im_start|>system\\n' + (messages[0].content + '\\n\\n' if messages[0].role == 'system' else '') + '# Tools\\n' }}
{%- for tool in tools %}{{- (tool | tojson) + '\\n' }}{%- endfor %}{{- '<|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' + (message.content or '') }}
{%- for call in message.tool_calls or [] %}{{- '\\n<tool_call>\\n' + (call.function | tojson) + '\\n</tool_call>' }}{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif message.role == 'tool' %}{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- elif message.role != 'system' %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""


def tokenizer() -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(SPECIAL + alphabet)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|endoftext|>", additional_special_tokens=["<|im_start|>"]
    )
    fast.chat_template = TEMPLATE
    return fast


def save(folder: str | Path) -> str:
    """Writes the tokenizer and the configuration of a Qwen3 with two layers, without weights. Returns the folder."""
    tokenizer().save_pretrained(folder)
    config = {
        "model_type": "qwen3",
        "architectures": ["Qwen3ForCausalLM"],
        "vocab_size": 259,
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "max_position_embeddings": 65536,
    }
    Path(folder, "config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)


def conversation(text: str) -> list[dict[str, str]]:
    """The messages of a rendered prompt, without the one that begins."""
    messages = []
    for turn in text.split("<|im_start|>")[1:-1]:
        role, _, content = turn.partition("\n")
        messages.append({"role": role, "content": content.split("<|im_end|>")[0]})
    return messages

"""A tokenizer of characters with the ChatML template, in the forms that SkyRL and OpenRLHF call, and the way back from tokens to messages."""

from __future__ import annotations

from typing import Any

START, END = "<|im_start|>", "<|im_end|>"


class _Batch(list):
    """What `return_tensors="pt"` gives, as far as it is used."""

    def tolist(self) -> list[int]:
        return list(self)


class Characters:
    chat_template = "chatml"
    eos_token, eos_token_id, pad_token_id = END, 1, 0

    def __call__(self, text: str, **_options: Any) -> dict[str, Any]:
        return {"input_ids": [_Batch(self.encode(text))]}

    def encode(self, text: str, **_options: Any) -> list[int]:
        ids = []
        while text:
            special = next((token for token in (START, END) if text.startswith(token)), None)
            ids.append(ord(text[0]) + 2 if special is None else int(special == END))
            text = text[len(special or "x") :]
        return ids

    def decode(self, ids: list[int], **_options: Any) -> str:
        return "".join((START, END)[token] if token < 2 else chr(token - 2) for token in ids)

    def apply_chat_template(self, messages: Any, add_generation_prompt: bool = False, tokenize: bool = True, **_options: Any) -> Any:
        text = "".join(f"{START}{one['role']}\n{one['content']}{END}\n" for one in messages)
        text += f"{START}assistant\n" if add_generation_prompt else ""
        return self.encode(text) if tokenize else text


def messages_of(text: str) -> list[dict[str, Any]]:
    """The conversation of a ChatML text that asks for the next message."""
    parts = [part.split(END)[0].partition("\n") for part in text.split(START)[1:-1]]
    return [{"role": role, "content": content} for role, _, content in parts]

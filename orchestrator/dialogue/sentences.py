"""The engine's own sentences: exits of bounds and things said where no system flow fits."""

from __future__ import annotations

_SENTENCES: dict[str, tuple[str, str]] = {
    "bounds": ("I seem to be going in circles, so I've stopped that.", "我好像在原地打转，先停下了。"),
    "nowhere": (
        "I don't know how to go on here, so I've stopped {name}.",
        "我不知道接下来该怎么办，所以停下了{name}。",
    ),
    "gone": ("{name} has been changed meanwhile, so I've stopped it.", "{name}已经改动过了，所以我停下了它。"),
    "errors": ("It still doesn't work, so I've stopped {name}.", "还是不行，所以我停下了{name}。"),
    "attempts": ("Let's leave {name} for now.", "{name}先放一放吧。"),
    "error": ("Something went wrong just now.", "刚才出了点问题。"),
    "nothing_to_cancel": ("There is nothing to cancel.", "现在没有可以取消的事。"),
    "nothing_like_that": ("There is nothing like that I could cancel or stop.", "我这里没有这样的事可以取消或停下。"),
    "cannot_handle": ("Sorry, I didn't get that.", "抱歉，我没明白。"),
    "undo_offer": (
        "I have already done this: {name}. Shall I take it back?",
        "这件事已经做了：{name}。要撤回吗？",
    ),
    "undone": ("All right, I've taken it back: {name}.", "好，已经撤回：{name}。"),
    "stays": ("All right, it stays as it is.", "好，那就不动了。"),
    "at_what_time": ("At what time?", "几点？"),
    "not_undone": ("I couldn't take this back: {name}.", "这件事没能撤回：{name}。"),
    "guard": ("That isn't possible right now.", "现在还不能这样做。"),
    "dropped": ("All right.", "好的。"),
    "kept": ("All right, let's go on.", "好，那我们继续。"),
}


def sentence(key: str, language: str | None, **values: object) -> str:
    """Return one of the sentences in the user's language."""
    english, chinese = _SENTENCES[key]
    text = chinese if language == "zh" else english
    return text.format(**{"name": "", **{k: str(v) for k, v in values.items()}})

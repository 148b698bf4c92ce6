"""What recognisers trained on video subtitles write when there is nothing to hear. Pure data and one test.

People say some of these things, too: a phrase alone is never a reason to reject, see `rejection`.
"""

from __future__ import annotations

import re

from audio.stt.chinese import ChineseScript, to_script
from audio.stt.text import units

PHRASES: tuple[str, ...] = (
    "you",
    "you you",
    "bye",
    "bye bye",
    "the end",
    "so",
    "oh",
    "uh",
    "thank you",
    "thank you very much",
    "thank you so much",
    "thanks",
    "thanks for watching",
    "thank you for watching",
    "thank you so much for watching",
    "thank you very much for watching",
    "thanks for listening",
    "thank you for listening",
    "see you next time",
    "see you in the next video",
    "i'll see you in the next video",
    "please subscribe",
    "please subscribe to my channel",
    "please like and subscribe",
    "don't forget to like and subscribe",
    "like and subscribe",
    "subtitles by the amara.org community",
    "transcription by castingwords",
    "i'm sorry",
    "i'm not sure",
    "music",
    "applause",
    "laughter",
    "silence",
    "blank audio",
    "inaudible",
    "谢谢",
    "谢谢大家",
    "谢谢观看",
    "谢谢您的观看",
    "谢谢大家观看",
    "感谢观看",
    "感谢您的观看",
    "感谢大家的观看",
    "感谢收看",
    "谢谢收看",
    "感谢收听",
    "请不吝点赞订阅",
    "请不吝点赞 订阅 转发 打赏支持明镜与点点栏目",
    "请订阅我的频道",
    "请点赞订阅",
    "点赞订阅",
    "欢迎订阅",
    "下期再见",
    "我们下期再见",
    "下期视频再见",
    "下次再见",
    "再见",
    "字幕由amara.org社区提供",
    "字幕志愿者",
    "字幕制作",
    "字幕组",
    "中文字幕",
    "音乐",
    "掌声",
    "嗯",
    "啊",
)

MARKERS: tuple[str, ...] = (
    "amara.org",
    "castingwords",
    "like and subscribe",
    "subscribe to my channel",
    "不吝点赞",
    "明镜与点点",
    "点点栏目",
    "打赏支持",
    "字幕志愿者",
    "字幕by",
)
"""Parts of texts that nobody says to a companion; a hit anywhere in the text counts."""

_SOUND = re.compile(r"[(\[（【*♪].*[)\]）】*♪]", re.DOTALL)


def _key(text: str) -> str:
    return "".join(units(to_script(text, ChineseScript.SIMPLIFIED)))


_PHRASE_KEYS = frozenset(map(_key, PHRASES))
_MARKER_KEYS = tuple(map(_key, MARKERS))


def is_hallucination_phrase(text: str) -> bool:
    """Whether all of `text` (in either Chinese script) is a known phrase, has a marker, or names a sound.

    Sounds are what stands in brackets: `[Music]`, 「（掌声）」. Repeated phrases count as one.
    """
    if _SOUND.fullmatch(text.strip()):
        return True
    key = _key(text)
    if not key:
        return False
    if key in _PHRASE_KEYS or any(marker in key for marker in _MARKER_KEYS):
        return True
    return any(
        key == key[:size] * (len(key) // size) and key[:size] in _PHRASE_KEYS
        for size in range(1, len(key) // 2 + 1)
        if len(key) % size == 0
    )

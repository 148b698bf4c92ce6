"""What the user hears and reads when there is no model, or it fails; the one place for these texts."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.llm.failures import FailureCode

_SPOKEN: dict[FailureCode, dict[str, str]] = {
    FailureCode.NONE: {
        "en": "I have no language model to think with. You can choose one in the settings.",
        "zh": "我现在没有可用的语言模型。请在设置里选择一个。",
    },
    FailureCode.STARTING: {
        "en": "My language model is still loading. Please ask me again in a moment.",
        "zh": "我的语言模型还在加载。请稍后再问我一次。",
    },
    FailureCode.CRASHED: {
        "en": "My language model has stopped and won't start again. Please restart me, or choose another model in the "
        "settings.",
        "zh": "我的语言模型停止了，而且无法重新启动。请重启程序，或在设置里换一个模型。",
    },
    FailureCode.UNREACHABLE: {
        "en": "I can't reach my language model. Please check the network and the address in the settings.",
        "zh": "我连不上语言模型。请检查网络和设置里的地址。",
    },
    FailureCode.UNAUTHORISED: {
        "en": "My language model refuses the key. Please check the key in the settings.",
        "zh": "语言模型拒绝了密钥。请检查设置里的密钥。",
    },
    FailureCode.MODEL_UNKNOWN: {
        "en": "The language model I should use doesn't exist there. Please choose another one in the settings.",
        "zh": "指定的语言模型不存在。请在设置里换一个。",
    },
    FailureCode.RATE_LIMITED: {
        "en": "My language model says I asked too often. Please wait a minute and try again.",
        "zh": "语言模型说请求太频繁了。请等一分钟再试。",
    },
    FailureCode.TIMEOUT: {
        "en": "My language model took too long to answer. Please try again, or choose a faster one in the settings.",
        "zh": "语言模型太久没有回答。请再试一次，或在设置里换一个更快的。",
    },
    FailureCode.CUT_SHORT: {
        "en": "My language model broke off there. Say “go on”, and I'll carry on.",
        "zh": "语言模型说到这里就断了。说“继续”，我就接着讲。",
    },
    FailureCode.TOO_LONG: {
        "en": "That is too much text for my language model. Please make it shorter, or start a new conversation.",
        "zh": "内容太长，语言模型处理不了。请说短一点，或开始新的对话。",
    },
    FailureCode.SERVER_ERROR: {
        "en": "My language model reported a fault. Please try again. If it stays, look at the settings.",
        "zh": "语言模型报告了故障。请再试一次。如果一直这样，请查看设置。",
    },
    FailureCode.BAD_ANSWER: {
        "en": "My language model gave an answer I can't use. Please try again, or choose another model.",
        "zh": "语言模型的回答无法使用。请再试一次，或在设置里换一个模型。",
    },
}
STILL = {
    "en": "My language model still doesn't work.",
    "zh": "语言模型还是用不了。",
}
_OFFLINE_LINES: dict[str, tuple[str, ...]] = {
    "en": (
        "I'm running without a language model, so I can't chat about that.",
        "Without a language model I only know my set phrases and tasks.",
        "I heard you, but I have no language model to answer that freely.",
        "That is beyond me right now. With a language model chosen in the settings I could say more.",
    ),
    "zh": (
        "我现在没有语言模型，这个没法聊。",
        "没有语言模型，我只会预设的话和任务。",
        "我听到了，但没有语言模型，没法自由回答。",
        "这个我现在答不上来。在设置里选好语言模型，我就能多说一些。",
    ),
}
_WRITTEN: dict[FailureCode, str] = {
    FailureCode.NONE: "no language model is configured; use --llm local or --llm URL",
    FailureCode.STARTING: "the local language model did not finish loading in time; try again or use --llm none",
    FailureCode.CRASHED: "the local language model can't be started; see its log file, or use --llm none",
    FailureCode.UNREACHABLE: "no language model answers at {base_url}; check the address, or use --llm local or none",
    FailureCode.UNAUTHORISED: "{base_url} refuses the key; set it in a variable and name that with --llm-key-env",
    FailureCode.MODEL_UNKNOWN: "{base_url} has no model {model!r}; choose one with --llm-model{choice}",
    FailureCode.RATE_LIMITED: "{base_url} refuses for too many requests; wait, or use another endpoint",
    FailureCode.TIMEOUT: "{base_url} did not answer in time; try again, or use another endpoint",
    FailureCode.CUT_SHORT: "{base_url} closed the stream before the answer was whole; try again",
    FailureCode.TOO_LONG: "the request is too long for the model {model!r}",
    FailureCode.SERVER_ERROR: "{base_url} reports a fault of its own; try again, or use another endpoint",
    FailureCode.BAD_ANSWER: "{base_url} does not answer like an OpenAI-compatible endpoint; check the address",
}


def text_language(language: str | None) -> str:
    """Return the language of these texts nearest to `language` (a BCP 47 tag or none): `en` or `zh`."""
    return "zh" if (language or "").lower().split("-")[0].split("_")[0] in ("zh", "yue", "cmn") else "en"


def spoken(code: FailureCode, language: str | None) -> str:
    """Return the sentence to say for a failure."""
    return _SPOKEN[code][text_language(language)]


def explain(
    code: FailureCode, language: str | None, *, base_url: str = "", model: str = "", models: Sequence[str] = ()
) -> str:
    """Return one line to show: the English one names the options of the command line, others are as spoken."""
    if text_language(language) != "en":
        return spoken(code, language)
    choice = f" (there: {', '.join(models[:8])})" if models else ""
    return _WRITTEN[code].format(base_url=base_url or "the endpoint", model=model, choice=choice)


def code_of(word: object) -> FailureCode:
    """Return the code in `LlmUnavailable.args[0]`; anything else counts as a bad answer."""
    try:
        return FailureCode(str(word))
    except ValueError:
        return FailureCode.BAD_ANSWER


def local_failure(code: FailureCode) -> FailureCode:
    """Return what a failure means for the offline model: one that can't be reached is being started again."""
    return FailureCode.STARTING if code is FailureCode.UNREACHABLE else code


class FailureNotice:
    """Says a failure in full once, and only that it lasts while the same one goes on."""

    def __init__(self) -> None:
        """Start with nothing said."""
        self._said: FailureCode | None = None

    def sentence(self, code: FailureCode, language: str | None) -> str:
        """Return what to say now that a call failed with `code`."""
        if code is FailureCode.CUT_SHORT:
            # It works, and what to do now is the same every time.
            return spoken(code, language)
        if code is self._said:
            return STILL[text_language(language)]
        self._said = code
        return spoken(code, language)

    def recovered(self) -> None:
        """Note that a call worked, so that the next failure is said in full."""
        self._said = None


class OfflineFallback:
    """The character's answers without a model: short, honest, never the same line twice in a row."""

    def __init__(self) -> None:
        """Start with the first line."""
        self._count = 0

    def line(self, language: str | None) -> str:
        """Return the next line in the user's language."""
        lines = _OFFLINE_LINES[text_language(language)]
        line = lines[self._count % len(lines)]
        self._count += 1
        return line

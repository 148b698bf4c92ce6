"""Word lists of extraction: fillers around an answer, yes and no."""

# ruff: noqa: E501 - lists of words, patterns and inline files are read line by line

from __future__ import annotations

import re
import unicodedata

CJK = re.compile(r"[\u3400-\u9fff]")

_FILLERS_EN = frozenset(
    ["a", "about", "actually", "alright", "also", "am", "an", "and", "answer", "around", "approximately", "are", "at", "aww", "be", "by", "can", "could", "do", "er", "exactly", "for", "from", "go", "going", "guess", "have", "hm", "hmm", "i", "i'd", "i'll", "i'm", "i've", "in", "is", "it", "it's", "its", "just", "kinda", "let", "lets", "let's", "like", "make", "makes", "maybe", "me", "mine", "my", "need", "of", "oh", "ok", "okay", "on", "or", "our", "perfect", "perhaps", "please", "precisely", "prefer", "probably", "put", "roughly", "say", "set", "shall", "should", "so", "some", "sort", "starting", "suppose", "sure", "thank", "thanks", "that", "that's", "the", "then", "there", "they", "think", "this", "to", "uh", "um", "us", "want", "we", "we'd", "we'll", "we're", "well", "will", "with", "works", "would", "yeah", "yep", "yes", "you", "your", "total", "altogether", "only", "right", "good", "fine", "great", "sharp", "until", "till", "guess", "got", "hey", "mhm", "mm", "nearly", "almost", "date", "time", "day", "start", "starts", "begin", "give", "take", "takes", "last", "lasts", "long", "how", "again", "later", "than", "now"]
)  # fmt: skip
_FILLERS_ZH = sorted(
    ["大概", "大约", "差不多", "应该", "可能", "也许", "左右", "那就", "那么", "就是", "还是", "我想要", "我想", "我要", "我觉得", "我希望", "希望", "想要", "需要", "给我", "帮我", "麻烦", "请", "谢谢", "多谢", "定在", "定", "设在", "设成", "设为", "设置", "设", "改到", "约在", "安排", "提醒", "叫我", "一共", "总共", "我们", "我", "你", "是", "在", "就", "吧", "呢", "嗯", "呃", "额", "哦", "噢", "啊", "呀", "嘛", "哈", "好的", "好", "的", "了", "那", "这个", "这", "个", "要", "想", "到", "从", "开始", "时间", "日期", "时候", "时", "行吗", "可以吗", "好吗", "行", "可以", "吗", "钟", "整", "之前", "以前", "为", "有", "会", "准时", "说", "选", "用", "来", "得", "地", "都", "也", "再", "先", "只", "最", "好像", "一下", "让", "跟", "和", "与", "左右吧", "前后", "上下", "的话", "一个"],
    key=len, reverse=True,
)  # fmt: skip
MEASURES_ZH = "个人位次张条件份本块元钱岁度杯瓶只辆间天号名台层楼斤公里米题分遍双套支颗包盒口名票桌"

YES_EN = frozenset(
    """yes|yeah|yep|yup|yea|ya|aye|ready|im ready|i am ready|got one|ive got one|i have one|i got one|sure|sure thing|of course|absolutely|definitely|certainly|correct|right|thats right|that is right|
    thats correct|that is correct|ok|okay|alright|all right|please do|go ahead|i do|i am|i have|i will|i would|it is|it does|they are|
    we are|we do|affirmative|fine|thats fine|that is fine|sounds good|sounds great|sounds fine|uh huh|mm hm|mm hmm|mhm|mm|exactly|indeed|
    why not|by all means|you bet|i think so|i guess so|i guess|i suppose so|true|thats true|do it|lets do it|please|totally|with pleasure|
    great|perfect|good|works for me|that works|id love to|i would love to|yes please|of course i do|i do indeed|naturally|for sure|
    i believe so|id like that|i would like that|no problem|i agree|agreed|yessir|yes sir|yes maam|roger|positive|very much so|
    most definitely|most certainly|no doubt|without a doubt|it was|he is|she is|he does|she does|i did|we did|i can|we can|you may|
    yes it is|yes i do|ok then|okay then|got it|cool|fair enough|happy to|i sure do|i sure am|yes indeed|yup yup|okey dokey|
    go for it|sounds like a plan|not a problem|lets|thats a yes|a yes|im in|im down|im game|count me in|you got it|yes wait yes|id say so|
    if you dont mind|if you could|as far as i know|i should think so|no objection|no objections|right on|for certain|it sure is""".replace("\n", "").replace("    ", "").split("|")
)  # fmt: skip
NO_EN = frozenset(
    """no|nope|nah|naw|no thanks|no thank you|not really|never|i dont|i do not|dont|please dont|no way|not at all|negative|not now|not today|
    id rather not|i would rather not|absolutely not|not yet|im afraid not|i am afraid not|i dont think so|i do not think so|nothing|
    false|incorrect|wrong|thats wrong|that is wrong|uh uh|nuh uh|not this time|im not|i am not|it isnt|it is not|its not|it does not|it doesnt|
    of course not|definitely not|certainly not|dont do it|not for me|no i dont|not exactly|not quite|hardly|no need|none|i havent|
    i have not|i wont|i will not|i cant|we dont|we are not|were not|they are not|not particularly|not necessary|thats not necessary|
    not correct|not right|thats not right|that is not right|thats not it|thats not correct|i disagree|no chance|no sir|no maam|not a chance|
    i didnt|i did not|it wasnt|it was not|he isnt|she isnt|he doesnt|she doesnt|no it isnt|i guess not|i think not|id prefer not to|
    i would prefer not to|better not|nope nope|no never|not likely|probably not|maybe not|i dont want to|i dont want that|not true|
    under no circumstances|not that i know of|not that i know|not as far as i know|i doubt it|lets not|im good|im fine|im all set|that wont be necessary|dont bother|id rather you didnt|i would rather you didnt|id rather not say no|
    i dont believe so|i dont feel like it|not my thing|not interested|im not interested|forget it|skip it|no go|no dice|i pass|ill pass|hell no|heck no|
    better not to|not anymore|not any more|certainly no|a no|thats a no|it wont|i shouldnt|please no|no it does not|by no means|forget about it""".replace("\n", "").replace("    ", "").split("|")
)  # fmt: skip
YES_ZH = frozenset(
    ["是", "想好", "想好了", "我想好了", "准备好了", "我准备好了", "好了", "有了", "是的", "是啊", "是呀", "是哦", "对", "对的", "对啊", "对呀", "对对", "对对对", "嗯", "嗯嗯", "嗯是的", "嗯对", "嗯好", "恩", "好", "好的", "好啊", "好呀", "好吧", "好嘞", "好滴", "可以", "可以的", "可以啊", "行", "行啊", "行吧", "行的", "没问题", "当然", "当然了", "当然可以", "当然好", "没错", "没错儿", "要", "要的", "需要", "有", "有的", "有啊", "确定", "确认", "同意", "愿意", "我愿意", "想", "想的", "会", "会的", "必须的", "必须", "正确", "那当然", "成", "中", "得", "妥", "OK", "ok", "是这样", "是这样的", "就是这样", "就是", "就这样", "说得对", "说对了", "我要", "我想", "我需要", "我有", "我会", "我同意", "我是", "我确定", "是我", "好哇", "可不是", "可不", "没毛病", "那好", "那好吧", "那行", "那可以", "太好了", "当然要", "当然想", "当然是", "肯定", "肯定的", "肯定是", "一定", "绝对", "绝对是", "真的", "不错", "嗯可以", "嗯行", "正是", "准", "麻烦了", "来吧", "开始吧", "好呢", "行呢", "答应", "对了", "对滴", "是滴", "嗯哼", "喜欢", "我喜欢", "非常", "没有问题", "是有的", "好好好", "行行行", "可以可以", "乐意", "很乐意", "求之不得", "对头", "的确", "确实", "的确是", "确实是", "猜对了", "是呢", "对呢", "有呀", "也行", "也可以", "也好", "我看行", "我看可以", "我觉得可以", "我觉得行", "我觉得好", "应该是", "好像是", "应该会", "应该可以", "大概是", "差不多是", "对对对就是", "那就这样", "就这么办", "就这么定", "听你的", "都听你的", "来吧来吧", "走起", "没意见", "我没意见", "不介意", "我不介意"]
)  # fmt: skip
NO_ZH = frozenset(
    ["不", "没想好", "还没想好", "没准备好", "还没准备好", "不是", "不是的", "不是啊", "不要", "不用", "不用了", "不行", "不行啊", "没有", "没", "不对", "不好", "不可以", "不想", "不需要", "不会", "别", "否", "不了", "不必", "不必了", "才不", "才不是", "绝不", "当然不", "当然不是", "当然没有", "不同意", "不愿意", "不太", "不太想", "不太行", "还没", "还没有", "没呢", "错", "错了", "不正确", "不是这样", "不是这样的", "我不要", "我不想", "我不", "我没有", "我不是", "我不需要", "我不会", "我不同意", "不用谢谢", "不了谢谢", "不要了", "不能", "不成", "不中", "从不", "从来没有", "从没", "没门", "没门儿", "休想", "拒绝", "我拒绝", "算了吧", "免了", "不怎么", "不怎么样", "不喜欢", "我不喜欢", "没必要", "没有必要", "绝对不", "绝对不是", "绝对不行", "肯定不是", "肯定不", "一点也不", "一点都不", "并不", "并不是", "并没有", "不确认", "不答应", "不去", "不去了", "不做", "不吃", "不吃了", "不玩", "不玩了", "没有啊", "没有的", "没有了", "不呢", "不啦", "不嘛", "非也", "别了", "先不", "先不要", "先不用", "暂时不", "暂时不用", "暂时不要", "现在不", "以后再说", "下次吧", "还是不了", "还是算了", "不大", "不", "不不", "不不不", "不可能", "哪有", "怎么可能", "不麻烦了", "猜错了", "不急", "不着急", "不是不是", "好像不是", "好像没有", "应该不是", "应该没有", "应该不会", "大概不是", "我觉得不行", "我觉得不好", "我看不行", "不合适", "不方便", "不感兴趣", "没兴趣", "没心情", "不必麻烦", "不劳烦", "用不着", "不存", "不发", "先别", "先别了", "别别", "别别别", "千万别", "行不通", "不可", "一点都没有", "怎么会"]
)  # fmt: skip


def fold_en(text: str) -> str:
    """Fold for word lists: case, apostrophes and hyphens gone, marks as spaces."""
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("'", "")
    return " ".join(re.sub(r"[^a-z0-9]+", " ", text).split())


def fold_zh(text: str) -> str:
    """Fold for word lists: no marks, no spaces."""
    return re.sub(r"[^\w]+", "", unicodedata.normalize("NFKC", text)).casefold()


def leftover_en(text: str, extra: frozenset[str] = frozenset()) -> list[str]:
    """Return the words that are no fillers."""
    words = re.findall(r"[a-z']+|\d[\w.:]*|[\u3400-\u9fff]+", text.casefold().replace("’", "'"))
    return [w for w in words if w not in _FILLERS_EN and w not in extra and w.strip("'")]


def leftover_zh(text: str, extra: frozenset[str] = frozenset()) -> str:
    """Return the characters that are no fillers."""
    text = re.sub(r"[^\w]+", " ", text)
    for word in sorted(extra, key=len, reverse=True):
        text = text.replace(word, " ")
    for word in _FILLERS_ZH:
        text = text.replace(word, " ")
    return "".join(text.split())


def is_measure_zh(text: str) -> bool:
    """Whether the text is only measure words."""
    return bool(text) and all(c in MEASURES_ZH for c in text)


_QUESTION_EN = re.compile(
    r"^(?:and |but |so |by the way |also |hey |um |uh )*(?:what|who|whom|whose|where|when|why|how|which|will|would|can|could|is|are|am|"
    r"do|does|did|should|shall|may|was|were|has|have|isnt|arent|dont|doesnt|wont|cant|whats|whos|wheres|hows|tell me)\b"
)
_QUESTION_ZH = re.compile(
    r"[吗呢么]$|什么|怎么|怎样|为什么|为何|哪[里儿个些天位]|几[点个号天]|谁|多少|多[大长远高久]|会不会|是不是|能不能|可不可以|有没有|要不要|好不好|对不对|告诉我"
)


def is_question(text: str) -> bool:
    """Whether a sentence asks something."""
    stripped = text.strip()
    if stripped.endswith(("?", "？")):
        return True
    if CJK.search(stripped):
        return bool(_QUESTION_ZH.search(re.sub(r"[^\w]+$", "", stripped)))
    return bool(_QUESTION_EN.match(fold_en(stripped)))


_HESITATION = re.compile(
    r"(?:u+m*|u+h+m*|e+r+m*|h+m+|m+|a+h+|well|like|so|let me see|let me think|嗯+|呃+|额+|唔+|啊+|那个|这个|就是|让我想想|我想想|想想)*"
)


def is_hesitation(text: str) -> bool:
    """Whether the text is only sounds of thinking."""
    return bool(_HESITATION.fullmatch(re.sub(r"[\W_]+", "", text.casefold()))) or bool(
        _HESITATION.fullmatch(fold_zh(text))
    )

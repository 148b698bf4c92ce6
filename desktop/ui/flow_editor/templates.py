"""Beginnings of a flow, a slot, a rail and a reminder, put into a text where they belong. Knows no Qt."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from orchestrator.flows.source import MapNode, Node, parse_source

KINDS = ("flow", "slot", "rail", "reminder")

_FLOW = """\
{id}:
  name: {{en: my flow, zh: 我的流程}}
  description: {{en: What it does in a sentence., zh: 用一句话说明它的作用。}}
  examples:
    - start my flow {id}
    - 开始我的流程{id}
  steps:
    - {{id: start, type: start, next: ask}}
    - id: ask
      type: collect
      slot_name: {slot}
      response: {{text: {{en: "What would you like?", zh: "你想要什么？"}}}}
      next: answer
    - id: answer
      type: action
      action: action_response
      args: {{text: {{en: "Noted: {{{{ slots.{slot} }}}}.", zh: "记下了：{{{{ slots.{slot} }}}}。"}}}}
      next: end
    - {{id: end, type: end}}
"""
_SLOT = """\
{id}:
  type: text
  label: {{en: my value, zh: 我的内容}}
  description: {{en: what the user says here, zh: 用户在这里说的内容}}
"""
_INTENT = """\
{id}:
  - an example of what the user says for {id}
  - 用户会说的一个例子：{id}
"""
_MESSAGE = """\
{id}:
  en: ["What the character answers."]
  zh: ["角色的回答。"]
"""
_RAIL = """\
{id}:
  kind: rail
  steps:
    - user: {intent}
    - bot: {message}
"""
_REMINDER = """\
{id}:
  name: {{en: remind me to drink, zh: 提醒我喝水}}
  description: {{en: Sets a reminder in half an hour., zh: 半小时后提醒我。}}
  examples:
    - remind me to drink some water soon
    - 过一会儿提醒我喝水
  steps:
    - {{id: start, type: start, next: save}}
    - id: save
      type: action
      action: action_set_reminder
      args:
        text: "{{% if user.language == 'zh' %}}喝水{{% else %}}drink some water{{% endif %}}"
        in_s: "1800"
      on_error: failed
      next: confirm
    - id: confirm
      type: action
      action: action_response
      args: {{text: {{en: "I'll remind you in half an hour.", zh: "好，半小时后提醒你。"}}}}
      next: end
    - id: failed
      type: action
      action: action_response
      args: {{text: {{en: "I couldn't save that.", zh: "没有保存成功。"}}}}
      next: end
    - {{id: end, type: end}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inserted:
    """The new text and the lines of the main part that was put in."""

    text: str
    line: int
    end_line: int


def insert_template(text: str, kind: str, taken: Container[str]) -> Inserted:
    """Put a template of `kind` into `text`; ids that are `taken` are not used again."""
    blocks = _blocks(kind, taken)
    for section, block in blocks[:-1]:
        text = _insert(text, section, block).text
    return _insert(text, *blocks[-1])


def _blocks(kind: str, taken: Container[str]) -> list[tuple[str, str]]:
    """Return (section, entry) pairs, the main one last."""
    if kind == "slot":
        return [("slots", _SLOT.format(id=_free("my_slot", taken)))]
    if kind == "rail":
        intent, message = _free("ask my question", taken), _free("answer my question", taken)
        rail = _RAIL.format(id=_free("my rail", taken), intent=intent, message=message)
        return [
            ("user_intents", _INTENT.format(id=intent)),
            ("bot_messages", _MESSAGE.format(id=message)),
            ("rails", rail),
        ]
    if kind == "reminder":
        return [("flows", _REMINDER.format(id=_free("my_reminder", taken)))]
    slot = _free("my_slot", taken)
    return [("slots", _SLOT.format(id=slot)), ("flows", _FLOW.format(id=_free("my_flow", taken), slot=slot))]


def _free(name: str, taken: Container[str]) -> str:
    joint = " " if " " in name else "_"
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}{joint}{number}"
    return found


def _insert(text: str, section: str, block: str) -> Inserted:
    if text and not text.endswith("\n"):
        text += "\n"
    lines = text.split("\n")[:-1]
    root = parse_source(text).root
    body = root.get(section) if isinstance(root, MapNode) else None
    indent, at, head = 2, len(lines), [f"{section}:"]
    if isinstance(body, MapNode) and body.entries and _is_block(lines, body):
        first = next(iter(body.entries.values()))[0]
        indent, at, head = first.col - 1, _last_line(body), []
    elif isinstance(root, MapNode) and section in root:
        key = root.key(section)
        rest = lines[key.line - 1][key.end_col :].strip()
        if isinstance(body, MapNode) and not body.entries and rest.replace(" ", "") == "{}":
            lines[key.line - 1] = f"{section}:"
            rest = ""
        if not rest or rest.startswith("#"):
            at, head = key.line, []
    put = [*head, *(" " * indent + row if row else row for row in block.rstrip("\n").split("\n"))]
    lines[at:at] = put
    begin = at + len(head) + 1
    return Inserted(text="\n".join(lines) + "\n", line=begin, end_line=at + len(put))


def _is_block(lines: list[str], body: MapNode) -> bool:
    return lines[body.line - 1][body.col - 1 : body.col] != "{"


def _last_line(node: Node) -> int:
    """Return the last line with something of the node, comments and blank lines behind it left out."""
    if isinstance(node, MapNode) and node.entries:
        key, value = list(node.entries.values())[-1]
        return max(key.line, _last_line(value))
    items = getattr(node, "items", None)
    if items:
        return max(node.line, _last_line(items[-1]))
    return node.end_line if node.end_col > 1 else max(node.line, node.end_line - 1)

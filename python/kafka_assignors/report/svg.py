"""Small SVG: the pictures of matplotlib in a tenth of the bytes, with the same appearance.

A page has dozens of pictures with thousands of letters and dots. matplotlib writes each of them as a group of its own
with its style and six decimals. Here equal groups become one definition, and coordinates have one or two decimals of a
point.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

__all__ = ["small"]

_SVG, _LINK = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?|-?\d+e-?\d+")
_STEP = re.compile(r"([A-Za-z])([^A-Za-z]*)")
_PLACED = re.compile(r"translate\((\S+) (\S+)\) (scale\([^)]*\))")


def small(svg: str) -> str:
    """The same picture, with fewer bytes. O(bytes).

    >>> small('<svg xmlns="http://www.w3.org/2000/svg"><g id="a"><path d="M 1.23456 2 \\nL 1.23456 5 \\n"/></g></svg>')
    '<svg xmlns="http://www.w3.org/2000/svg"><path d="M1.23 2V5"/></svg>'
    """
    root = xml.etree.ElementTree.fromstring(svg)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.text = element.text if element.tag == "style" else None
        element.tail = None
        if _LINK in element.attrib:
            element.set("href", element.attrib.pop(_LINK))
    shared = xml.etree.ElementTree.Element("defs")
    _without(root, shared)
    _say_once(root, shared)
    for element in [*root.iter(), *shared.iter()]:
        _shorten(element)
    if len(shared):
        root.insert(0, shared)
    _rename(root)
    root.set("xmlns", _SVG)
    return xml.etree.ElementTree.tostring(root, "unicode").replace(" />", "/>")


def _without(element: Element, shared: Element) -> None:
    """Removes elements that are not drawn, and moves definitions to one place."""
    kept: list[Element] = []
    for child in element:
        if child.tag == "metadata":
            continue
        if child.tag == "defs":
            shared.extend(child)
            continue
        _without(child, shared)
        # A group without attributes has no effect on its children.
        if child.tag == "g" and not set(child.attrib) - {"id"}:
            kept.extend(child)
        else:
            kept.append(child)
    element[:] = kept


def _words(root: Element) -> Iterator[tuple[Element, int, str, tuple[str, ...]]]:
    """The groups of a word or a letter: parent, index, transform, and a key that is equal for equal groups."""
    for parent in root.iter():
        for at, child in enumerate(parent):
            match = _PLACED.fullmatch(child.get("transform", "")) if child.tag == "g" else None
            if match is None or any(each.tag != "use" or len(each) for each in child):
                continue
            letters = (f"{each.get('href')} {each.get('transform')} {each.get('x')}" for each in child)
            yield parent, at, match[0], (match[3], child.get("style", ""), *letters)


def _say_once(root: Element, shared: Element) -> None:
    """A repeated word becomes a definition and its uses; a style that all uses share moves to their group."""
    found = list(_words(root))
    often = Counter(word for *_, word in found)
    names: dict[tuple[str, ...], str] = {}
    for parent, at, transform, word in found:
        if often[word] < 2:
            continue
        match = _PLACED.fullmatch(transform)
        assert match is not None
        if word not in names:
            names[word] = f"word-{len(names)}"
            meant = parent[at]
            meant.set("transform", match[3])
            meant.set("id", names[word])
            shared.append(meant)
        parent[at] = xml.etree.ElementTree.Element("use", {"href": f"#{names[word]}", "x": match[1], "y": match[2]})
    for parent in root.iter("g"):
        styles = {each.get("style") if each.tag == "use" else None for each in parent}
        if len(parent) > 1 and len(styles) == 1 and None not in styles and "style" not in parent.attrib:
            parent.set("style", str(styles.pop()))
            for each in parent:
                del each.attrib["style"]


def _shorten(element: Element) -> None:
    for name, value in list(element.attrib.items()):
        if name == "d":
            element.set(name, _path(value))
        elif name == "style":
            element.set(name, re.sub(r"\s*([:;])\s*", r"\1", value).strip(";"))
        elif name in ("transform", "width", "height"):
            element.set(name, _NUMBER.sub(_rounded, value))
        elif name in ("x", "y"):
            element.set(name, f"{float(value):.1f}".removesuffix(".0"))
    # The position of a letter in its word.
    match = re.fullmatch(r"translate\((\S+) 0\)", element.get("transform", ""))
    if match is not None and element.tag == "use" and "x" not in element.attrib:
        del element.attrib["transform"]
        element.set("x", f"{float(match[1]):.0f}")


def _rounded(match: re.Match[str]) -> str:
    value = float(match[0])
    # A number below one may be a scale of large coordinates: four digits keep their error small.
    text = f"{value:.4g}" if abs(value) < 1 else f"{value:.2f}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def _path(text: str) -> str:
    """A path without redundant characters. It reads only the commands of matplotlib, which are absolute."""
    at: tuple[str, ...] = ()
    steps: list[str] = []
    for command, rest in _STEP.findall(_NUMBER.sub(_plain, text)):
        numbers = tuple(rest.split())
        if command == "L" and len(numbers) == 2 and len(at) == 2 and (at[0] == numbers[0] or at[1] == numbers[1]):
            steps.append("h0" if at == numbers else f"V{numbers[1]}" if at[0] == numbers[0] else f"H{numbers[0]}")
        else:
            steps.append(command + " ".join(numbers))
        at = numbers[-2:]
    return "".join(steps)


def _plain(match: re.Match[str]) -> str:
    text = f"{float(match[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _rename(root: Element) -> None:
    """Shortens ids with a reference, and removes the others."""
    used: dict[str, str] = {}
    reference = re.compile(r"url\(#([^)]+)\)")
    for element in root.iter():
        for name, value in element.attrib.items():
            for target in [value[1:]] if name == "href" and value.startswith("#") else reference.findall(value):
                used.setdefault(target, f"i{len(used)}")
    for element in root.iter():
        for name, value in list(element.attrib.items()):
            if name == "id":
                if value in used:
                    element.set(name, used[value])
                else:
                    del element.attrib[name]
            elif name == "href" and value.startswith("#"):
                element.set(name, f"#{used[value[1:]]}")
            elif "url(#" in value:
                element.set(name, reference.sub(lambda match: f"url(#{used[match[1]]})", value))

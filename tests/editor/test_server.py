"""The language server from an editor's side: a real client and a real process."""

from __future__ import annotations

import asyncio
import operator
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient

from tests.editor.session import Session, in_editor

TYPES = """eventtype Login { attribute string user; attribute string host.name; };
eventtype Failed : Login { attribute long tries; };
eventtype Alarm { attribute string user; };
"""
RULES = """// Three failures, then a success.
Alarm correlation Guessed (Failed bad where tries > 1, Login good)
    few:bad{3} ; good
    within 10 min
    by user
    having sum(bad.tries) > 5
{
    case few: push new Alarm { user = good.user };
}

Alarm ecl Silence (Login login)
    by user
{
    repeat { notify { sequential { login, timeout(1 h) } } }
}
"""


def test_mistakes_are_shown_while_typing_and_go_away(tmp_path: Path) -> None:
    async def story(editor: Session) -> None:
        editor.open("rules.cor", TYPES + RULES.replace("; good", "; goood"))
        found = await editor.diagnostics("rules.cor", lambda each: bool(each))

        assert [each.code for each in found if each.severity == types.DiagnosticSeverity.Error] == [
            "unknown-port"
        ]
        error = found[0]
        assert editor.shown(editor.uri("rules.cor"), error.range) == "goood"
        assert error.related_information is not None
        assert error.related_information[0].message == "did you mean `good`?"

        editor.change("rules.cor", TYPES + RULES)
        await editor.diagnostics("rules.cor", lambda each: not each)

    in_editor(tmp_path, story)


def test_what_the_analyses_find_comes_a_moment_later(tmp_path: Path) -> None:
    text = (
        "eventtype A { attribute long x; };\n"
        "A correlation Never (A a where x > 3 AND (x < 2 AND TRUE)) a { case true: push a; }\n"
    )

    async def story(editor: Session) -> list[types.Diagnostic]:
        editor.open("rules.cor", text)
        return await editor.diagnostics("rules.cor", lambda each: bool(each))

    found = in_editor(tmp_path, story)

    assert {each.severity for each in found} == {types.DiagnosticSeverity.Warning}


def test_a_quick_fix_writes_the_line_of_the_hint(tmp_path: Path) -> None:
    broken = TYPES + (
        "Alarm correlation R (Failed a, Login b) a -> b within 5m\n"
        "{ case true: push new Alarm {}; }\n"
    )

    async def story(editor: Session) -> str:
        editor.open("rules.cor", broken)
        found = await editor.diagnostics("rules.cor", lambda each: bool(each))
        actions = await editor.client.text_document_code_action_async(
            types.CodeActionParams(
                editor.at("rules.cor"), found[0].range, types.CodeActionContext(found)
            )
        )
        action = next(each for each in actions or () if isinstance(each, types.CodeAction))
        assert action.kind == types.CodeActionKind.QuickFix
        assert action.edit is not None
        assert action.edit.changes is not None
        return editor.edited(
            editor.uri("rules.cor"), list(action.edit.changes[editor.uri("rules.cor")])
        )

    fixed = in_editor(tmp_path, story)

    assert "a ; b within 5 min" in fixed


async def _labels(editor: Session, position: types.Position) -> list[str]:
    answer = await editor.client.text_document_completion_async(
        types.CompletionParams(editor.at("rules.cor"), position)
    )
    assert isinstance(answer, types.CompletionList)
    return [each.label for each in answer.items]


def test_completion_after_a_port_offers_its_attributes(tmp_path: Path) -> None:
    async def story(editor: Session) -> list[str]:
        position = editor.open("rules.cor", TYPES + RULES.replace("good.user", "good.¦"))
        return await _labels(editor, position)

    assert {"user", "host.name"} <= set(in_editor(tmp_path, story))


def test_half_written_text_keeps_the_symbols_of_the_other_definitions(tmp_path: Path) -> None:
    half = TYPES + "Alarm correlation Broken (Failed bad where tries >\n\n" + RULES

    async def story(editor: Session) -> list[str]:
        editor.open("rules.cor", half)
        answer = await editor.client.text_document_document_symbol_async(
            types.DocumentSymbolParams(editor.at("rules.cor"))
        )
        return [each.name for each in answer or ()]

    assert in_editor(tmp_path, story) == [
        *("Login", "Failed", "Alarm", "Broken", "Guessed", "Silence")
    ]


def test_hover_explains_a_rule_in_words_and_what_it_costs(tmp_path: Path) -> None:
    async def story(editor: Session) -> str:
        position = editor.open("rules.cor", TYPES + RULES.replace("Guessed", "Gue¦ssed"))
        answer = await editor.client.text_document_hover_async(
            types.HoverParams(editor.at("rules.cor"), position)
        )
        assert answer is not None
        assert isinstance(answer.contents, types.MarkupContent)
        return answer.contents.value

    text = in_editor(tmp_path, story)

    assert "`bad` 3 times, then `good`" in text
    assert "`Guessed` keeps for each `user`" in text


def test_names_are_found_over_the_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "types.cor").write_text(TYPES)

    async def story(editor: Session) -> None:
        position = editor.open("rules.cor", RULES.replace("Login good", "Lo¦gin good"))
        await editor.diagnostics("rules.cor", lambda each: not each)
        where = await editor.client.text_document_definition_async(
            types.DefinitionParams(editor.at("rules.cor"), position)
        )
        assert isinstance(where, list)
        assert [each.uri for each in where] == [editor.uri("types.cor")]

        found = await editor.client.text_document_references_async(
            types.ReferenceParams(
                types.ReferenceContext(include_declaration=True),
                editor.at("rules.cor"),
                position,
            )
        )
        names = [(Path(each.uri).name, editor.shown(each.uri, each.range)) for each in found or ()]
        assert sorted(names) == [
            *(("rules.cor", "Login"), ("rules.cor", "Login")),
            *(("types.cor", "Login"), ("types.cor", "Login")),
        ]
        symbols = await editor.client.workspace_symbol_async(types.WorkspaceSymbolParams("lo"))
        assert [each.name for each in symbols or ()] == ["Login"]

    in_editor(tmp_path, story)


def test_an_import_opens_its_file(tmp_path: Path) -> None:
    (tmp_path / "types.cor").write_text(TYPES)

    async def story(editor: Session) -> list[str]:
        position = editor.open("rules.cor", f'import "ty¦pes.cor";\n{RULES}')
        where = await editor.client.text_document_definition_async(
            types.DefinitionParams(editor.at("rules.cor"), position)
        )
        assert isinstance(where, list)
        assert [each.range.start for each in where] == [types.Position(0, 0)]
        return [each.uri for each in where] + [editor.uri("types.cor")]

    found, expected = in_editor(tmp_path, story)

    assert found == expected


def test_rename_changes_every_file_and_refuses_a_clash(tmp_path: Path) -> None:
    (tmp_path / "types.cor").write_text(TYPES)

    async def story(editor: Session) -> None:
        position = editor.open(
            "rules.cor", RULES.replace("by user\n    having", "by us¦er\n    having")
        )

        def asked(name: str) -> types.RenameParams:
            return types.RenameParams(editor.at("rules.cor"), position, name)

        with pytest.raises(JsonRpcException, match="`tries`"):
            await editor.client.text_document_rename_async(asked("tries"))
        answer = await editor.client.text_document_rename_async(asked("account"))
        assert answer is not None
        assert answer.changes is not None
        texts = {
            Path(uri).name: editor.edited(uri, list(edits)) for uri, edits in answer.changes.items()
        }
        # The key is one name for all ports, so both types that declare it are renamed.
        assert texts["types.cor"].count("attribute string account;") == 2
        assert "user" not in texts["rules.cor"] + texts["types.cor"]
        assert "push new Alarm { account = good.account }" in texts["rules.cor"]

    in_editor(tmp_path, story)


def test_formatting_keeps_comments(tmp_path: Path) -> None:
    async def story(editor: Session) -> str:
        editor.open("rules.cor", TYPES + "Alarm correlation R(Login a /* in */)a{push a} // so\n")
        edits = await editor.client.text_document_formatting_async(
            types.DocumentFormattingParams(
                editor.at("rules.cor"), types.FormattingOptions(tab_size=4, insert_spaces=True)
            )
        )
        return editor.edited(editor.uri("rules.cor"), list(edits or ()))

    text = in_editor(tmp_path, story)

    assert text.endswith(
        "Alarm correlation R (\n    Login a  /* in */\n)\n    a\n{\n    push a;\n}  // so\n"
    )


def test_tokens_folds_and_highlights_answer_for_the_whole_file(tmp_path: Path) -> None:
    async def story(editor: Session) -> None:
        position = editor.open("rules.cor", TYPES + RULES.replace("few:bad", "few:b¦ad"))
        tokens = await editor.client.text_document_semantic_tokens_full_async(
            types.SemanticTokensParams(editor.at("rules.cor"))
        )
        assert tokens is not None
        assert len(tokens.data) % 5 == 0
        assert len(tokens.data) > 5 * 40
        folds = await editor.client.text_document_folding_range_async(
            types.FoldingRangeParams(editor.at("rules.cor"))
        )
        assert (4, 11) in [(each.start_line, each.end_line) for each in folds or ()]
        marks = await editor.client.text_document_document_highlight_async(
            types.DocumentHighlightParams(editor.at("rules.cor"), position)
        )
        shown = [editor.shown(editor.uri("rules.cor"), each.range) for each in marks or ()]
        assert shown == ["bad", "bad", "bad"]

    in_editor(tmp_path, story)


def test_columns_are_counted_as_the_editor_counts_them(tmp_path: Path) -> None:
    text = TYPES + "/* \U0001f600 */ Alarm correlation R (Login a) a { push ¦x }\n"

    async def story(editor: Session) -> None:
        editor.open("rules.cor", text)
        found = await editor.diagnostics("rules.cor", lambda each: bool(each))
        assert "x" in [editor.shown(editor.uri("rules.cor"), each.range) for each in found]

    in_editor(tmp_path, story)


def test_a_change_of_types_is_seen_in_the_file_that_needs_them(tmp_path: Path) -> None:
    async def story(editor: Session) -> None:
        editor.open("types.cor", TYPES)
        editor.open("rules.cor", RULES)
        await editor.diagnostics("rules.cor", lambda each: not each)
        editor.change("types.cor", TYPES.replace("long tries", "long attempts"))
        found = await editor.diagnostics("rules.cor", lambda each: bool(each))
        assert "undeclared-attribute" in [each.code for each in found]

    in_editor(tmp_path, story)


def test_settings_say_which_files_form_a_library(tmp_path: Path) -> None:
    (tmp_path / "one.cor").write_text(TYPES)
    (tmp_path / "two.cor").write_text(TYPES)

    async def unclear(editor: Session) -> list[types.Diagnostic]:
        editor.open("rules.cor", RULES)
        return await editor.diagnostics("rules.cor", lambda each: bool(each))

    found = in_editor(tmp_path, unclear)
    assert "unclear-library" in [each.code for each in found]

    async def told(editor: Session) -> None:
        (tmp_path / "rules.cor").write_text(RULES)
        editor.open("rules.cor", RULES)
        await editor.diagnostics("rules.cor", lambda each: not each)

    in_editor(tmp_path, told, {"libraries": [["two.cor", "rules.cor"]]})


def test_a_server_over_tcp_answers_on_loopback(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "ensue", "lsp", "--tcp", str(port)], stderr=subprocess.PIPE
    )

    async def hello() -> str | None:
        client = LanguageClient("test", "1")
        for _ in range(100):
            try:
                await client.start_tcp("127.0.0.1", port)
                break
            except OSError:
                await asyncio.sleep(0.1)
        answer = await client.initialize_async(
            types.InitializeParams(types.ClientCapabilities(), root_uri=tmp_path.as_uri())
        )
        await client.shutdown_async(None)
        client.exit(None)
        return answer.server_info.name if answer.server_info else None

    try:
        assert asyncio.run(hello()) == "ensue"
    finally:
        process.terminate()
        process.wait(10)


def test_a_keystroke_in_a_large_file_is_answered_soon(tmp_path: Path) -> None:
    many = TYPES + "".join(
        RULES.replace("Guessed", f"Guessed{each}").replace("Silence", f"Silence{each}")
        for each in range(200)
    )

    async def story(editor: Session) -> float:
        editor.open("rules.cor", many)
        await editor.diagnostics("rules.cor", lambda _: True)
        position = editor.change("rules.cor", many.replace("good.user", "good.¦", 1))
        start = time.perf_counter()
        labels = await _labels(editor, position)
        assert "user" in labels
        return time.perf_counter() - start

    assert in_editor(tmp_path, story) < 5


def test_edits_of_single_words_are_followed(tmp_path: Path) -> None:
    async def story(editor: Session) -> None:
        position = editor.open("rules.cor", TYPES + RULES.replace("; good", "; ¦good"))
        await editor.diagnostics("rules.cor", lambda each: not each)
        end = types.Position(position.line, position.character + 4)
        for version, (span, text, wanted) in enumerate(
            [
                (types.Range(position, end), "nobody", 1),
                (types.Range(position, types.Position(end.line, end.character + 2)), "good", 0),
            ],
            2,
        ):
            change = types.TextDocumentContentChangePartial(span, text)
            editor.client.text_document_did_change(
                types.DidChangeTextDocumentParams(
                    types.VersionedTextDocumentIdentifier(version, editor.uri("rules.cor")),
                    [change],
                )
            )
            await editor.diagnostics("rules.cor", bool if wanted else operator.not_)

    in_editor(tmp_path, story)


def test_a_text_that_was_never_saved_is_checked_too(tmp_path: Path) -> None:
    async def story(editor: Session) -> None:
        uri = "untitled:Untitled-1"
        item = types.TextDocumentItem(uri, "ensue", 1, "eventtype A : B {};\n")
        editor.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        found = await editor.diagnostics_of(uri, lambda each: bool(each))
        assert [each.code for each in found] == ["unknown-type"]

    in_editor(tmp_path, story)


def test_lines_of_either_end_are_counted_alike(tmp_path: Path) -> None:
    text = (TYPES + RULES.replace("; good", "; goood")).replace("\n", "\r\n")

    async def story(editor: Session) -> types.Diagnostic:
        editor.open("rules.cor", text)
        return (await editor.diagnostics("rules.cor", lambda each: bool(each)))[0]

    found = in_editor(tmp_path, story)

    assert (found.range.start.line, found.range.start.character) == (5, 17)
    assert found.range.end.character == 22


WINES = """eventtype Bottle { attribute string wine; };
eventtype Red { attribute string wine; };
Red correlation Reds (Bottle b where wine IS_A wine:RedVine) b
{ case true: push new Red { wine = b.wine }; }
"""


def test_predicates_are_checked_with_the_ontology_of_the_settings(tmp_path: Path) -> None:
    from ensue.knowledge import SAMPLES

    shutil.copy(SAMPLES / "wine.ttl", tmp_path / "wine.ttl")

    async def story(editor: Session) -> tuple[list[str], list[str]]:
        editor.open("rules.cor", WINES)
        wrong = await editor.diagnostics("rules.cor", bool)
        editor.change("rules.cor", WINES.replace("RedVine", "RedWine"))
        right = await editor.diagnostics("rules.cor", lambda each: "RedVine" not in str(each))
        return [each.message for each in wrong], [each.message for each in right]

    wrong, right = in_editor(tmp_path, story, {"ontology": ["wine.ttl"]})

    assert any("RedVine" in each for each in wrong)
    assert right == []


def test_a_hover_over_a_large_library_holds_up_no_other_request(tmp_path: Path) -> None:
    """The large library has 1,500 rules, which take seconds to read and check."""
    many = TYPES + "".join(RULES.replace("Guessed", f"Rule{n}") for n in range(1_500))
    text = many.replace("Rule700", "Rul¦e700", 1)

    async def story(editor: Session) -> list[str]:
        position = editor.open("rules.cor", text)
        small = editor.open("small.cor", "eventtype Lo¦ne { attribute string user; };")
        done: list[str] = []

        async def ask(name: str, file: str, at: types.Position) -> None:
            await editor.client.text_document_hover_async(types.HoverParams(editor.at(file), at))
            done.append(name)

        await asyncio.gather(ask("large", "rules.cor", position), ask("small", "small.cor", small))
        return done

    assert in_editor(tmp_path, story) == ["small", "large"]

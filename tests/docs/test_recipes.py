"""The documentation begins with what users asked for, and the README with one of its recipes."""

from __future__ import annotations

from .pages import Page, read_pages

PAGES = {page.name: page for page in read_pages()}
COOKBOOK = PAGES["docs/cookbook.md"]
FEWEST_RECIPES = 25


def rules(page: Page) -> list[str]:
    return [block.text for block in page.of("cor")]


def test_the_first_rule_of_the_readme_is_a_recipe() -> None:
    assert rules(PAGES["README.md"])[0] in rules(COOKBOOK)


def test_the_first_rule_of_the_start_page_is_a_recipe() -> None:
    assert rules(PAGES["docs/start.md"])[0] in rules(COOKBOOK)


def test_every_recipe_has_a_rule_and_a_case_of_it() -> None:
    recipes = {block.section: block for block in COOKBOOK.of("cor")}
    cases = {block.section: block for block in COOKBOOK.of("toml")}

    assert len(recipes) >= FEWEST_RECIPES
    assert list(recipes) == list(cases)
    assert all(f'"{recipes[name].title}"' in cases[name].text for name in recipes)


def test_the_four_questions_come_first() -> None:
    first = [block.section for block in COOKBOOK.of("cor")][:4]

    assert first == [
        "A price 5 % below the one before",
        "More than five addresses for one user in ten minutes",
        "An item was added, nothing was paid for thirty minutes: which item?",
        "Each purchase within an hour of a login",
    ]


def test_every_other_system_has_its_rule_and_ours() -> None:
    page = PAGES["docs/coming-from.md"]
    others = ("java", "sql", "yaml", "text")
    theirs = [b.section for b in page.blocks if b.language in others and not b.title]
    ours = [block.section for block in page.of("cor")]

    assert (
        theirs == ours == ["Flink CEP", "`MATCH_RECOGNIZE`", "Esper", "EQL", "Sigma correlations"]
    )

// People in a hurry read the pages for users: one thought a sentence. Tables, code, headings and the decisions are left out.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { findPages } from "../source-files.js";

const MAX_WORDS = 25;

/** Code is one word, whatever is in it. */
const WORDS = /(`[^`]*`|[^\s`])+/g;

/** Words for which the pages have another word. */
const BANNED_WORDS = /\b(told|twins|ghost)\b/;

suite("sentences on the pages for users", (test) => {
  const pages = [...findPages(), "CONTRIBUTING.md", "generator/docs/compared.md"];
  const sentences = pages.flatMap((path) =>
    sentencesOf(readFileSync(join(repositoryRoot, path), "utf8")).map((each) => ({ path, ...each })),
  );

  test(`have ${MAX_WORDS} words at most`, () => {
    const long = sentences.map((each) => ({ ...each, words: wordsOf(each.text) }));
    assert.equal(
      long
        .filter(({ words }) => words > MAX_WORDS)
        .map(({ path, line, text, words }) => `${path}:${line}: ${words} words: ${text}`),
      [],
    );
  });

  test("use one word for one thing", () => {
    const banned = sentences.filter(({ text }) => BANNED_WORDS.test(text));
    assert.equal(
      banned.map(({ path, line, text }) => `${path}:${line}: ${text}`),
      [],
    );
  });

  test("end at a full stop, an item, a paragraph, and not within code", () => {
    const page =
      "# A heading\n\nOne two\nthree `a. B c` four. Five:\n\n- six\n- seven! Eight\n\n```ts\nno. No\n```\n| no. |\n";
    assert.equal(sentencesOf(page), [
      { line: 3, text: "One two three `a. B c` four." },
      { line: 4, text: "Five:" },
      { line: 6, text: "- six" },
      { line: 7, text: "- seven!" },
      { line: 7, text: "Eight" },
    ]);
    assert.equal(
      sentencesOf(page).map(({ text }) => wordsOf(text)),
      [5, 1, 1, 1, 1],
    );
  });
});

suite("the decisions of the runtime", (test) => {
  test("are in the order of their dates, within a subject", () => {
    const page = readFileSync(join(repositoryRoot, "runtime/docs/decisions.md"), "utf8");
    const late = page.split("\n## ").flatMap((subject) => {
      const entries = subject.match(/^- .*/gm) ?? [];
      return entries.filter(
        (entry, index) => !/^- 20\d\d-\d\d-\d\d: /.test(entry) || dateOf(entry) < dateOf(entries[index - 1]),
      );
    });
    assert.equal(late, []);
  });
});

function dateOf(entry = ""): string {
  return entry.slice(2, 12);
}

interface Sentence {
  line: number;
  text: string;
}

function sentencesOf(page: string): Sentence[] {
  const sentences: Sentence[] = [];
  let words: string[] = [];
  let line = 0;
  let isCode = false;
  const finish = () => {
    if (words.length > 0) sentences.push({ line, text: words.join(" ") });
    words = [];
  };
  for (const [index, text] of page.split("\n").entries()) {
    const isFence = /^\s*```/.test(text);
    if (isFence) isCode = !isCode;
    const isProse = !isFence && !isCode && !/^\s*($|#|\||<!--)/.test(text);
    if (!isProse || /^\s*([-*]|\d+\.) /.test(text)) finish();
    for (const word of isProse ? (text.match(WORDS) ?? []) : []) {
      // What begins with a small letter goes on with the sentence before.
      if (/[.!?][)"*_]*$/.test(words.at(-1) ?? "") && /^[A-Z0-9`*_["(]/.test(word)) finish();
      if (words.length === 0) line = index + 1;
      words.push(word);
    }
  }
  finish();
  return sentences;
}

function wordsOf(sentence: string): number {
  return (sentence.match(WORDS) ?? []).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}

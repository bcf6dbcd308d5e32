import { readFileSync } from "node:fs";
import { join } from "node:path";
import { compileExpression, findSyntaxProblems } from "#schema/cel/index.js";
import fc from "../../support/fast-check.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";

const EXPRESSION =
  "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
const atEnd = (offset: number) => `${offset}: Syntax error: mismatched input '<EOF>' expecting ${EXPRESSION}`;

const told = (text: string) => findSyntaxProblems(text).map(({ offset, message }) => `${offset}: ${message}`);

suite("findSyntaxProblems", (test) => {
  const cases: [text: string, ...problems: string[]][] = [
    ["self.a ==", atEnd(9)],
    ["(self.a", "7: Syntax error: missing ')' at '<EOF>'"],
    ["self.a)", "6: Syntax error: extraneous input ')' expecting <EOF>"],
    ["self.a and self.b", "7: Syntax error: mismatched input 'and' expecting <EOF>"],
    ["self.a == 'b", "10: Syntax error: token recognition error at: ''b'", atEnd(12)],
    [
      "self.a = 1",
      "7: Syntax error: token recognition error at: '= '",
      "9: Syntax error: extraneous input '1' expecting <EOF>",
    ],
    ["self..a", "5: Syntax error: no viable alternative at input '..'"],
    ["[1,,2]", "3: Syntax error: mismatched input ',' expecting ']'"],
    ["{'a' 1}", "5: Syntax error: missing ':' at '1'"],
    ["-", "1: Syntax error: no viable alternative at input '-'", atEnd(1)],
    ["99999999999999999999 == 1", "0: invalid int literal"],
    ["1 == -9223372036854775809", "5: invalid int literal"],
    ["1 - 9223372036854775808", "4: invalid int literal"],
    ["-9223372036854775808"],
    ["0xffffffffffffffffff", "0: invalid int literal"],
    ["18446744073709551616u", "0: invalid uint literal"],
    ["1e999 == 1.0", "0: invalid double literal"],
    [String.raw`self.matches(r"""^(\*\.)?("[a-z]"|'')+$""")`],
    [String.raw`self.matches(R'''\d'"''') && b == br"""\a"""`],
    [String.raw`r"" + r'' + r"\d"`],
    ["self.`a-b`", "5: unsupported syntax: '`'"],
    ["let x", "0: reserved identifier: let", "4: Syntax error: extraneous input 'x' expecting <EOF>"],
  ];
  for (const [text, ...problems] of cases)
    test(`returns the errors of cel-go for ${text}`, () => assert.equal(told(text), problems));

  test("returns nothing for the rules of kube-apiserver's tests", () => {
    const rules = readFileSync(join(repositoryRoot, "fixtures/cel/published-rules.jsonl"), "utf8");
    const texts = new Set(
      [...rules.matchAll(/"rule":("(?:\\.|[^"\\])*")/g)].map(([, json]) => JSON.parse(json!) as string),
    );
    const read = [...texts].filter((text) => "expression" in compileExpression(text));
    assert.ok(read.length > 500);
    assert.equal(
      read.filter((text) => findSyntaxProblems(text).length > 0),
      [],
    );
  });

  test("reads any text without a crash, and ignores deeply nested text", () => {
    const piece = fc.constantFrom(..."( ) [ ] { } , . : ? ! - + && || == in 'a' \" ' ` a 1 1.5 & # \n".split(" "), " ");
    fc.assert(fc.property(fc.array(piece), (pieces) => void findSyntaxProblems(pieces.join(""))));
    assert.equal(findSyntaxProblems(`${"(".repeat(50_000)}1`), []);
  });
});

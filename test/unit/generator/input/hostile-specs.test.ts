// Whatever stands at a field of a spec: a diagnostic that says where, never a crash, and never silence about a value of a wrong type.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "../../../support/fast-check.js";
import { parse, stringify } from "yaml";
import { formatDiagnostic, type Diagnostic } from "#generator/diagnostic.js";
import { readBuiltinKinds } from "#generator/read/kinds.js";
import { readCrds } from "#generator/read/crd/read-crds.js";
import { loadSpecSchema, readWorkflows } from "#generator/read/workflows.js";
import { buildModel } from "#generator/check/build-model.js";
import { repositoryRoot } from "../../../support/repository.js";
import { isThorough, runs } from "../../../support/runs.js";
import { assert, suite } from "../../../support/suite.js";

type Path = readonly (string | number)[];

/** The spec in the documentation, which has every field. */
const readme = readFileSync(join(repositoryRoot, "generator/README.md"), "utf8");
const whole = [...readme.matchAll(/```yaml\n(.*?)```/gs)]
  .map(([, text]) => parse(text!) as object)
  .find((spec) => JSON.stringify(spec).includes("pruning"))!;
const crdFile = "fixtures/samples/webpage/crds/webpages.example.com.yaml";
const { crds } = readCrds({ file: crdFile, text: readFileSync(join(repositoryRoot, crdFile), "utf8") });
const builtin = await readBuiltinKinds();
const checkSpec = await loadSpecSchema();

function pathsOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== "object" || value === null) return [path];
  const steps = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
  return [path, ...steps.flatMap((step) => pathsOf((value as Record<string, unknown>)[step], [...path, step]))];
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce((found, step) => (found as Record<string, unknown>)[step], value);
}

function changed(value: unknown, path: Path, to: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return to;
  const copy = Array.isArray(value) ? [...value] : { ...(value as object) };
  (copy as Record<string, unknown>)[step] = changed((value as Record<string, unknown>)[step], rest, to);
  return copy;
}

function kindOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}

/** Reads a spec, and builds its model where nothing is wrong with its shape. */
async function diagnosticsOf(text: string): Promise<readonly Diagnostic[]> {
  const { workflows, diagnostics } = readWorkflows({ file: "workflow.yaml", text }, checkSpec);
  if (diagnostics.length > 0) return diagnostics;
  return (await buildModel({ crds, workflows, builtin })).diagnostics;
}

function problemsOf(diagnostics: readonly Diagnostic[]): string[] {
  return diagnostics.flatMap((each) => {
    const text = formatDiagnostic(each);
    const isPlaced = /^workflow\.yaml:[1-9]\d*:[1-9]\d*: /.test(text);
    const isClean = !/\[object |\bundefined,|NaN|TypeError|^ +at .*\.js/m.test(text);
    const isShort = text.length < 6_000;
    return isPlaced && isClean && isShort ? [] : [text.slice(0, 300)];
  });
}

const VALUES: readonly unknown[] = [
  ...[null, true, false, 0, -1, 0.5, 1e300],
  ...[
    "",
    " ",
    "x".repeat(20_000),
    "__proto__",
    "constructor",
    "../../etc/passwd",
    "a\u0000b",
    "\u2028",
    "👩‍👩‍👧",
    "{{ x }}",
    "*/",
  ],
  ...[[], {}, [[]], [null], [{}], { "": "" }],
  JSON.parse('{ "__proto__": { "a": 1 }, "constructor": {}, "toString": 1 }'),
  { hasOwnProperty: 1, valueOf: null },
];

/** What a field may be besides what the documentation shows. */
const OTHER_KINDS: readonly [path: RegExp, kinds: readonly string[]][] = [
  [/\.bulk$/, ["object", "boolean"]],
  [/\.resource$/, ["object", "string"]],
  [/(Condition|Precondition|Postcondition)$/, ["object", "string"]],
  [/dependsOn\.\d+$/, ["object", "string"]],
  [/(namespaces|cache|mapping)$/, ["object", "string", "array"]],
  [/operations\.\w+$/, ["boolean", "string"]],
  [/fieldEquals\.value$/, ["string", "number", "boolean"]],
];

suite("spec validation", (test) => {
  const paths = pathsOf(whole).filter((path) => path.length > 0);

  test("accepts the documented spec, which has more than 250 paths", async () => {
    assert.ok(paths.length > 250, String(paths.length));
    assert.equal(problemsOf(await diagnosticsOf(stringify(whole))), []);
  });

  test(
    "reports a value of a wrong type with its position, and never crashes",
    async () => {
      const all = paths.flatMap((path) => VALUES.map((value) => [path, value] as const));
      const cases = isThorough ? all : fc.sample(fc.constantFrom(...all), runs(1_600));
      const wrong: string[] = [];
      for (const [path, value] of cases) {
        const at = path.join(".");
        const text = JSON.stringify(changed(whole, path, value));
        const diagnostics = await diagnosticsOf(text).catch((error: Error) => error);
        if (diagnostics instanceof Error) {
          wrong.push(`${at} = ${JSON.stringify(value).slice(0, 60)}: ${diagnostics.stack}`);
          continue;
        }
        const kind = kindOf(value);
        const [, allowed = []] = OTHER_KINDS.find(([pattern]) => pattern.test(at)) ?? [];
        const isOther = kind !== kindOf(valueAt(whole, path)) && !allowed.includes(kind);
        const isSilent = isOther && !diagnostics.some(({ severity }) => severity === "error");
        if (isSilent) wrong.push(`${at} = ${JSON.stringify(value).slice(0, 60)} is accepted`);
        wrong.push(...problemsOf(diagnostics).map((text) => `${at} = ${JSON.stringify(value).slice(0, 60)}: ${text}`));
      }
      assert.is(wrong.slice(0, 20).join("\n"), "");
    },
    { timeoutMs: 300_000 },
  );

  const text = stringify(whole, { lineWidth: 0 });
  const lines = text.split("\n");
  const keyLines = lines.flatMap((line, index) =>
    /^ *[\w/.]+: \S/.test(line) && !/: [{["]/.test(line) ? [index] : [],
  );
  const withLine = (index: number, line: string) => lines.with(index, line).join("\n");

  test("reports the same diagnostics with a byte order mark and CRLF", async () => {
    const told = async (given: string) => (await diagnosticsOf(given)).map(formatDiagnostic);
    const plain = await told(text);
    assert.equal(await told(`\uFEFF${text}`), plain);
    assert.equal(await told(text.replaceAll("\n", "\r\n")), plain);
  });

  /** An edit of a line; undefined if it has no meaning for the line. */
  type Edit = (line: string) => string | undefined;

  const edits: readonly [what: string, rule: RegExp, edit: Edit][] = [
    ["a duplicate key", /^(duplicate-key|yaml-syntax)$/, (line) => `${line}\n${line}`],
    ["an alias without an anchor", /^yaml-(alias|syntax)$/, (line) => line.replace(/: .*/, ": *nothing")],
    ["a custom tag", /^yaml-tag$/, (line) => line.replace(/: /, ": !secret ")],
    ["a tab as indentation", /^yaml-syntax$/, (line) => (line.startsWith(" ") ? line.replace(/^ +/, "\t") : undefined)],
    [
      "a merge key without a mapping",
      /^(yaml-merge|unknown-field|spec-type|yaml-syntax)$/,
      (line) => `${line}\n${line.match(/^ */)?.[0]}<<: 1`,
    ],
    ["a recursive anchor", /^(yaml-alias|yaml-syntax)$/, (line) => line.replace(/: .*/, ": &a [*a]")],
    [
      "a __proto__ sibling",
      /^(unknown-field|spec-name|spec-type|yaml-merge|reserved-name|spec-value)$/,
      (line) => `${line}\n${line.match(/^ */)?.[0]}__proto__: { a: 1 }`,
    ],
    [
      "a constructor sibling",
      /^(unknown-field|spec-name|spec-type|reserved-name|spec-value|spec-required)$/,
      (line) => `${line}\n${line.match(/^ */)?.[0]}constructor: 1`,
    ],
  ];
  for (const [what, rule, edit] of edits)
    test(`reports a line with ${what} at its position`, async () => {
      const wrong: string[] = [];
      let tried = 0;
      for (const index of fc.sample(fc.constantFrom(...keyLines), runs(120))) {
        const line = lines[index] ?? "";
        const edited = edit(line);
        if (edited === undefined) continue;
        assert.is.not(edited, line);
        tried++;
        const diagnostics = await diagnosticsOf(withLine(index, edited));
        const errors = diagnostics.filter(({ severity }) => severity === "error");
        if (!errors.some((each) => rule.test(each.rule)))
          wrong.push(`${edited}: ${errors.map(({ rule, message }) => `${rule} ${message}`).join(", ") || "accepted"}`);
        wrong.push(...problemsOf(diagnostics));
      }
      assert.is([...new Set(wrong)].slice(0, 10).join("\n"), "");
      assert.ok(tried > 0);
    });
});

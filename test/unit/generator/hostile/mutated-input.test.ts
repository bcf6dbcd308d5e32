import { readFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "../../../support/fast-check.js";
import { parseAllDocuments, stringify } from "yaml";
import { formatDiagnostic, hasErrors, type Diagnostic } from "#generator/diagnostic.js";
import { generate } from "#generator/generate.js";
import { generateTypes } from "#generator/generate-types.js";
import { suggestCaches } from "#generator/suggest/suggest-caches.js";
import { runCommand } from "../../../support/command-line.js";
import { repositoryRoot } from "../../../support/repository.js";
import { runs } from "../../../support/runs.js";
import { assert, suite } from "../../../support/suite.js";
import { createFolderWith } from "./project-text.js";

const samples = join(repositoryRoot, "fixtures/samples");
const crd = await readFile(join(samples, "webpage/crds/webpages.example.com.yaml"), "utf8");
const podwatchCrd = await readFile(join(samples, "podwatch/crds/podwatches.example.com.yaml"), "utf8");
const podwatch = await readFile(join(samples, "podwatch/workflow.yaml"), "utf8");
const webpage = await readFile(join(samples, "webpage/workflow.yaml"), "utf8");

/** How long one run may take, in milliseconds of this process: far more than it takes. */
const LIMIT_MS = 5000;

const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(null, true, false, "", 0, -1, 5, 1e400, -1e400, NaN, 2 ** 53, 0.1),
  fc.constantFrom<unknown>([], {}, [null], [{}], [[]], { type: "object" }, { $ref: "file:///etc/passwd" }),
  fc.constantFrom("__proto__", "constructor", "toString", "*/", "`${process.exit()}`", "\u2028", "\u202e", "\ud800"),
  fc.constantFrom("object", "string", "array", "integer", "v1/Pod", "full", "ready", "../../x", "a".repeat(300)),
  fc.jsonValue({ maxDepth: 2 }),
);

const hostileKey = fc.constantFrom("__proto__", "constructor", "$ref", "enum", "default", "items", "<<", "", "a b");

/** A change of a tree of values at a place that a number chooses. */
const treeChange = fc.record({
  at: fc.nat(),
  kind: fc.constantFrom("replace", "delete", "rename", "add", "swap"),
  value: hostileValue,
  key: hostileKey,
});

/** What means something in YAML. */
const TOKENS = [
  "<<: *a",
  "&a ",
  "*a",
  "!!binary ",
  "!x ",
  "? ",
  "- ",
  "---\n",
  "...\n",
  "\t",
  "\0",
  "{",
  "}",
  "[",
  "]",
];
const MORE_TOKENS = [
  "|",
  ">",
  "'",
  '"',
  "#",
  ": ",
  ",",
  "%YAML 1.1\n",
  "\ufeff",
  "\u0085",
  "\r",
  "yes",
  ".nan",
  "0x1F",
];

const textChange = fc.record({
  at: fc.nat(),
  length: fc.nat(20),
  insert: fc.constantFrom("", ...TOKENS, ...MORE_TOKENS),
});

/** Returns a mutation of a text: of its values, or of its characters. */
function mutated(text: string): fc.Arbitrary<string> {
  const ofTree = fc.array(treeChange, { minLength: 1, maxLength: 4 }).map((changes) => {
    const trees = parseAllDocuments(text).map((document) => document.toJS() as unknown);
    for (const change of changes) changeTree(trees[change.at % trees.length], change);
    return trees.map((tree) => stringify(tree)).join("---\n");
  });
  const ofText = fc.array(textChange, { minLength: 1, maxLength: 3 }).map((changes) => applyChanges(text, changes));
  return fc.oneof({ arbitrary: ofTree, weight: 2 }, ofText);
}

/** What means something in TypeScript. */
const CODE_TOKENS = [
  "(",
  ")",
  "{",
  "}",
  "[",
  "]",
  "=>",
  "...",
  "`",
  "${",
  "}",
  "?.",
  "!",
  "as any",
  "<",
  ">",
  ";",
  "\n",
  "//",
];
const CODE_WORDS = [
  "this",
  "arguments",
  "await ",
  "yield ",
  "new ",
  "class X {",
  "export ",
  "import ",
  "function ",
  "const ",
];

/** Returns a mutation of the text of a program. */
function mutatedCode(text: string): fc.Arbitrary<string> {
  const change = fc.record({
    at: fc.nat(),
    length: fc.nat(12),
    insert: fc.constantFrom("", ...CODE_TOKENS, ...CODE_WORDS),
  });
  return fc.array(change, { minLength: 1, maxLength: 4 }).map((changes) => applyChanges(text, changes));
}

function applyChanges(text: string, changes: readonly { at: number; length: number; insert: string }[]): string {
  let changed = text;
  for (const { at, length, insert } of changes) {
    const start = at % (changed.length + 1);
    changed = changed.slice(0, start) + insert + changed.slice(start + length);
  }
  return changed;
}

type Container = Record<string, unknown> | unknown[];

function changeTree(
  tree: unknown,
  { at, kind, value, key }: { at: number; kind: string; value: unknown; key: string },
): void {
  const places = placesIn(tree);
  const place = places[at % Math.max(places.length, 1)];
  if (place === undefined) return;
  const [container, name] = place as [Record<string, unknown>, string];
  const define = (field: string, to: unknown) =>
    Object.defineProperty(container, field, { value: to, enumerable: true, configurable: true, writable: true });
  if (kind === "replace") define(name, structuredClone(value));
  else if (kind === "add") define(key, structuredClone(value));
  else if (kind === "swap") define(name, structuredClone(container[Object.keys(container)[0] ?? name]));
  else {
    const old = container[name];
    delete container[name];
    if (kind === "rename") define(key, old);
  }
}

function placesIn(node: unknown): [Container, string][] {
  if (typeof node !== "object" || node === null) return [];
  return Object.entries(node).flatMap(([name, child]): [Container, string][] => [
    [node as Container, name],
    ...placesIn(child),
  ]);
}

async function withinLimit<T>(run: () => Promise<T>): Promise<T> {
  const start = process.cpuUsage();
  const result = await run();
  const { user, system } = process.cpuUsage(start);
  assert.ok((user + system) / 1000 < LIMIT_MS, `took ${(user + system) / 1000} ms`);
  return result;
}

function checkDiagnostics(diagnostics: readonly Diagnostic[]): void {
  for (const diagnostic of diagnostics) {
    assert.ok(diagnostic.message.length > 0);
    assert.not.match(formatDiagnostic(diagnostic), /\[object \w+\]|found undefined|:NaN/);
    const { position } = diagnostic;
    if (position !== undefined) assert.ok(position.line >= 1 && position.column >= 1);
  }
}

suite("generation from mutated input", (test) => {
  const slow = { timeoutMs: 600_000 };

  test(
    "generates up-to-date types of a CRD or reports an error, within 5 s of CPU time",
    async () => {
      await fc.assert(
        fc.asyncProperty(mutated(crd), async (text) => {
          await using folder = await createFolderWith({ "a.yaml": text });
          const options = { files: [join(folder.path, "a.yaml")], out: join(folder.path, "out") };
          const { diagnostics, report } = await withinLimit(() => generateTypes(options));
          checkDiagnostics(diagnostics);
          assert.is(report === undefined, hasErrors(diagnostics));
          // What was generated is what a check finds.
          if (report !== undefined) assert.equal((await generateTypes({ ...options, check: true })).report?.stale, []);
        }),
        { numRuns: runs(600) },
      );
    },
    slow,
  );

  for (const [name, spec, definition] of [
    ["webpage", webpage, crd],
    ["podwatch", podwatch, podwatchCrd],
  ] as const)
    test(
      `generates code of the ${name} spec or reports an error, within 5 s of CPU time`,
      async () => {
        const file = "crds/a.yaml";
        const input = fc.oneof(
          { arbitrary: fc.record({ spec: mutated(spec), definition: fc.constant(definition) }), weight: 2 },
          fc.record({ spec: fc.constant(spec), definition: mutated(definition) }),
        );
        await fc.assert(
          fc.asyncProperty(input, async (texts) => {
            await using folder = await createFolderWith({ "workflow.yaml": texts.spec, [file]: texts.definition });
            const { diagnostics, report } = await withinLimit(() => generate({ project: folder.path }));
            checkDiagnostics(diagnostics);
            assert.is(report === undefined, hasErrors(diagnostics));
          }),
          { numRuns: runs(64) },
        );
      },
      slow,
    );

  test.thorough(
    "generates despite broken user code, with stub-constant as the only possible error",
    async () => {
      const files = ["src/podwatch/reconciler.ts", "src/podwatch/filters.ts", "src/podwatch/event-sources/node.ts"];
      const texts = await Promise.all(files.map((file) => readFile(join(samples, "podwatch", file), "utf8")));
      const input = fc
        .nat(files.length - 1)
        .chain((index) => fc.tuple(fc.constant(index), mutatedCode(texts[index] ?? "")));
      const definition = "crds/a.yaml";
      await fc.assert(
        fc.asyncProperty(input, async ([index, text]) => {
          const code = Object.fromEntries(
            files.map((file, each) => [file, each === index ? text : (texts[each] ?? "")]),
          );
          await using folder = await createFolderWith({
            "workflow.yaml": podwatch,
            [definition]: podwatchCrd,
            ...code,
          });
          const { diagnostics, report } = await withinLimit(() => generate({ project: folder.path }));
          checkDiagnostics(diagnostics);
          const errors = diagnostics.filter(({ severity }) => severity === "error");
          assert.equal([...new Set(errors.map(({ rule }) => rule))], errors.length === 0 ? [] : ["stub-constant"]);
          assert.is(report === undefined, errors.length > 0);
          const suggested = await withinLimit(() => suggestCaches({ project: folder.path }));
          assert.equal(suggested.diagnostics, []);
          assert.is(suggested.report.length, 2);
        }),
        { numRuns: runs(64) },
      );
    },
    slow,
  );

  test.thorough(
    "initializes a project of a CRD or reports an error without a stack trace",
    async () => {
      await fc.assert(
        fc.asyncProperty(mutated(crd), async (text) => {
          await using folder = await createFolderWith({ "a.yaml": text });
          const run = () => runCommand(folder.path, "init", "op", "--crd", "a.yaml");
          const { status, stderr } = await withinLimit(run);
          assert.not.match(stderr, /bug in it|\n {4}at /);
          assert.ok(status === 0 || stderr.includes("error"), stderr);
        }),
        { numRuns: runs(40) },
      );
    },
    slow,
  );
});

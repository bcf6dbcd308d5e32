import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { formatPosition, type Diagnostic } from "#generator/diagnostic.js";
import { generate } from "#generator/generate.js";
import { findFloatingPromises, mayDropPromise } from "#generator/code/floating-promises.js";
import { repositoryRoot } from "../../../../support/repository.js";
import { assert, suite } from "../../../../support/suite.js";
import { createTemporaryFolder } from "../../../../support/temporary-folder.js";

const FIXTURE = join(repositoryRoot, "fixtures/rejected/floating-promise");

const HELPERS = `
export async function remove(id?: string): Promise<void> {}
export declare const client: { delete(id: string): Promise<void>; maybe?: (id: string) => Promise<void>; name: string };
export declare const thenable: { then(resolve: (value: string) => void): void };
export declare const list: string[];
export declare const isOn: boolean;
export declare const untyped: any;
export declare const kept: Promise<void>;
export declare const sync: { then: string; catch(): void };
export declare const tag: (texts: TemplateStringsArray) => Promise<void>;
`;

const REPORTED = [
  "remove();",
  "(remove());",
  "remove() as unknown as Promise<string>;",
  "client.delete('a');",
  "client.maybe?.('a');",
  "client['delete']('a');",
  "kept;",
  "thenable;",
  "tag`a`;",
  "new Promise(() => {});",
  "remove().then(() => {});",
  "remove().then(() => {}, undefined);",
  "remove().catch();",
  "remove().finally(() => {});",
  "remove().catch(() => {}).then(() => remove());",
  "Promise.all([remove(), remove()]);",
  "Promise.allSettled([remove()]);",
  "list.map((id) => remove(id));",
  "list.map(async (id) => { await remove(id); });",
  "[remove(), 1];",
  "isOn ? remove() : undefined;",
  "isOn && remove();",
  "client.maybe ?? remove();",
  "await remove(), remove();",
  "(async () => { await remove(); })();",
  "const nested = () => { remove(); };",
  "function inner() { if (isOn) for (const id of list) remove(id); }",
  "list.forEach((id) => { remove(id); });",
  "class Registry { add() { remove(); } }",
];

const ACCEPTED = [
  "await remove();",
  "return remove();",
  "void remove();",
  "const result = remove();",
  "let later; later = remove();",
  "remove().catch(() => {});",
  "remove().catch(untyped);",
  "remove().then(() => {}, () => {});",
  "remove().catch(() => {}).finally(() => {});",
  "await Promise.all([remove()]);",
  "await (isOn ? remove() : undefined);",
  "isOn ? await remove() : void remove();",
  "list.forEach(async (id) => remove(id));",
  "list.push('a');",
  "untyped.delete();",
  "sync;",
  "client.name;",
  "const arrow = () => remove();",
];

suite("findFloatingPromises", (test) => {
  const files = [
    { path: "src/helpers.ts", content: HELPERS },
    ...[...REPORTED, ...ACCEPTED].map((statement, index) => ({
      path: `src/a/case-${index}.ts`,
      content: `import { client, isOn, kept, list, remove, sync, tag, thenable, untyped } from "../helpers.js";
export async function run(): Promise<unknown> {
${statement}
}\n`,
    })),
  ];
  const paths = files.map(({ path }) => path);
  let reported: ReadonlySet<string> | undefined;
  const isReported = (index: number) => {
    const search = {
      root: "/nowhere",
      files,
      imported: paths,
      candidates: files.filter(mayDropPromise).map(({ path }) => path),
    };
    reported ??= new Set(findFloatingPromises(search).map(({ position }) => `${position.file}:${position.line}`));
    return reported.has(`src/a/case-${index}.ts:3`);
  };

  for (const [index, statement] of REPORTED.entries())
    test(`reports ${statement}`, () => assert.is(isReported(index), true), { timeoutMs: 60_000 });

  for (const [index, statement] of ACCEPTED.entries())
    test(`accepts ${statement}`, () => assert.is(isReported(REPORTED.length + index), false), { timeoutMs: 60_000 });

  test("skips files whose statements only declare, return, await, or assign", () => {
    const mayDrop = (content: string) => mayDropPromise({ path: "a.ts", content });
    assert.is(mayDrop("export const desired = async ({ primary }) => ({ a: await primary.a() });"), false);
    assert.is(mayDrop("export const create = async () => { await a(); b = c(); d++; void e(); return f(); };"), false);
    assert.is(mayDrop("export const remove = async () => { a(); };"), true);
  });
});

suite("rule floating-promise", (declareTest) => {
  const test = (title: string, body: () => unknown) => declareTest(title, body, { timeoutMs: 60_000 });
  const floating = (diagnostics: readonly Diagnostic[]) =>
    diagnostics.filter(({ rule }) => rule === "floating-promise").map(({ position }) => formatPosition(position!));

  test("checks the files that generated code imports, directly or not", async () => {
    const { diagnostics, report } = await generate({ project: FIXTURE, check: true });
    assert.is(report, undefined);
    const places = floating(diagnostics);
    assert.ok(places.includes("src/registry.ts:9:3"));
    assert.ok(places.includes("src/webpage/dependents/records.ts:12:5"));
    assert.equal(
      places.filter((place) => place.startsWith("src/unused.ts")),
      [],
    );
  });

  test("is checked again after a change of code, tsconfig.json, or installed packages", async () => {
    await using folder = await createTemporaryFolder();
    const project = folder.path;
    const at = (path: string) => join(project, path);
    await cp(FIXTURE, project, { recursive: true });
    for (const path of ["src/registry.ts", "src/webpage/reconciler.ts", "src/webpage/conditions.ts"]) {
      const text = await readFile(at(path), "utf8");
      await writeFile(
        at(path),
        text.replace(/^( +)(appendFile|Promise|all;|register\("served|unregister)/gm, "$1void $2"),
      );
    }
    const reconciler = await readFile(at("src/webpage/reconciler.ts"), "utf8");
    await writeFile(
      at("src/webpage/reconciler.ts"),
      reconciler.replace("? register", "? void register").replace("&& unregister", "&& void unregister"),
    );
    const records = await readFile(at("src/webpage/dependents/records.ts"), "utf8");
    const unawaited = ["src/webpage/dependents/records.ts:12:5"];
    assert.equal(floating((await generate({ project })).diagnostics), unawaited);

    await writeFile(at("src/webpage/dependents/records.ts"), records.replace("    unregister", "    await unregister"));
    const { diagnostics, report } = await generate({ project });
    assert.equal(diagnostics, []);
    assert.ok(report?.created.includes("src/generated/webpage/workflow.ts"));
    await generate({ project });
    assert.equal((await generate({ project, check: true })).diagnostics, []);

    const declared =
      'import { run } from "installed";\nimport type { ConfigMapDesired } from "../../generated/webpage/types.js";\n';
    await writeFile(
      at("src/webpage/dependents/config-map.ts"),
      `${declared}export const desired: ConfigMapDesired = ({ primary: { metadata } }) => {\n  run();\n  return { metadata: { name: metadata.name } };\n};\n`,
    );
    assert.equal(floating((await generate({ project })).diagnostics), []);
    await mkdir(at("node_modules/installed"), { recursive: true });
    await writeFile(at("node_modules/installed/index.d.ts"), "export declare function run(): Promise<void>;\n");
    await writeFile(at("node_modules/installed/package.json"), '{ "name": "installed", "types": "index.d.ts" }\n');
    await writeFile(at("node_modules/.package-lock.json"), '{ "packages": { "node_modules/installed": {} } }\n');
    assert.equal(floating((await generate({ project })).diagnostics), ["src/webpage/dependents/config-map.ts:4:3"]);

    await writeFile(
      at("tsconfig.json"),
      '{ "compilerOptions": { "module": "NodeNext", "strict": true, "paths": { "installed": ["./none.ts"] } } }\n',
    );
    assert.equal(floating((await generate({ project })).diagnostics), ["src/webpage/dependents/config-map.ts:4:3"]);
    await writeFile(at("none.d.ts"), "export declare function run(): void;\n");
    await writeFile(
      at("tsconfig.json"),
      '{ "compilerOptions": { "module": "NodeNext", "strict": true, "paths": { "installed": ["./none.d.ts"] } } }\n',
    );
    assert.equal(floating((await generate({ project })).diagnostics), []);
  });

  test("can be accepted in the dependent, with a warning if the acceptance is unused", async () => {
    await using folder = await createTemporaryFolder();
    await cp(FIXTURE, folder.path, { recursive: true });
    const file = join(folder.path, "src/webpage/dependents/secret.ts");
    const isSecret = ({ position, rule }: Diagnostic) =>
      position?.file === "src/webpage/dependents/secret.ts" || rule === "unused-acceptance";
    const found = async () => (await generate({ project: folder.path })).diagnostics.filter(isSecret);
    assert.equal(await found(), []);
    await writeFile(file, (await readFile(file, "utf8")).replace("  warm()", "  void warm()"));
    assert.equal(
      (await found()).map(({ severity, rule }) => `${severity} ${rule}`),
      ["warning unused-acceptance"],
    );
  });
});

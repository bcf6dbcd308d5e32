// The how-to guides of docs/how-to are in the index, and readers can follow them: their links, files, commands, flags and names exist.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseAllDocuments } from "yaml";
import { checkGuides, filesOf, type Guide } from "../../support/projects/guide-types.js";
import { fencesOf } from "../../support/projects/fences.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";

const INDEX = "docs/README.md";
const FOLDER = "docs/how-to";
const CRD = `${FOLDER}/shop.yaml`;
/** Flags of kubectl that the text of a guide names. */
const KUBECTL_FLAGS = ["--server-side"];

const read = (path: string) => readFileSync(join(repositoryRoot, path), "utf8");
const surface = (name: string) => read(`fixtures/surface/${name}.txt`);

const index = read(INDEX);
const guides: Guide[] = readdirSync(join(repositoryRoot, FOLDER))
  .filter((name) => name.endsWith(".md"))
  .map((name) => ({ name: name.slice(0, -".md".length), text: read(`${FOLDER}/${name}`) }));
const pages = [
  { path: INDEX, text: index },
  ...guides.map(({ name, text }) => ({ path: `${FOLDER}/${name}.md`, text })),
];

suite("how-to guides", (test) => {
  test("are all listed in the index, which lists nothing else", () => {
    const listed = [...index.matchAll(/\]\(how-to\/([\w-]+)\.md\)/g)].map(([, name = ""]) => name);
    assert.equal(listed.sort(), guides.map(({ name }) => name).sort());
  });

  test("link only to existing files and headings", () => {
    assert.equal(
      pages.flatMap(({ path, text }) => brokenLinks(path, text)),
      [],
    );
    assert.equal(brokenLinks(INDEX, "[a](nothing.md) [b](README.md#nothing) [c](README.md#tutorial)"), [
      `${INDEX}: nothing.md`,
      `${INDEX}: README.md#nothing`,
    ]);
  });

  test("name the file of each YAML, TypeScript and diff block, and indent no block", () => {
    const unnamed = pages.flatMap(({ path, text }) =>
      fencesOf(path, text)
        .filter(({ info }) => /^(ya?ml|ts|diff)$/.test(info))
        .map(({ line, info }) => `${path}:${line}: ${info}`),
    );
    assert.equal(unnamed, []);
    assert.equal(
      pages.filter(({ text }) => /^[ \t]+```/m.test(text)).map(({ path }) => path),
      [],
    );
  });

  test("contain only YAML of workflows, Kubernetes objects or kustomizations", () => {
    const files = pages.flatMap(({ path, text }) => filesOf({ name: path, text }));
    assert.equal(
      files
        .filter(({ language }) => language === "yaml")
        .flatMap(({ readme, path, code }) => wrongYaml(readme, path, code)),
      [],
    );
    assert.equal(wrongYaml("page.md", "a.yaml", "kind: Shop"), ["page.md: a.yaml: no object of Kubernetes"]);
  });

  test("use only existing commands, flags, settings and scripts", () => {
    const missing = pages.flatMap(({ path, text }) => unknownWords(text).map((problem) => `${path}: ${problem}`));
    assert.equal(missing, []);
    const wrong =
      "```sh\nnpx gen-operator generat\nnpx gen-operator diff --agains main\nnpm run built\nnpm start -- --log-levle=debug\n```\nSet `--nothing`.\n";
    assert.equal(unknownWords(wrong), [
      "gen-operator generat: no command",
      "gen-operator diff: no flag --agains",
      "npm run built: no script",
      "no setting --log-levle",
      "no flag --nothing",
    ]);
  });

  test("use only existing labels, annotations, Event reasons and condition reasons", () => {
    assert.equal(
      pages.flatMap(({ path, text }) => unknownNames(text).map((name) => `${path}: ${name}`)),
      [],
    );
    assert.equal(unknownNames("gen-operator.dev/pause, an Event `Stuck`, the reason `Broken`"), [
      "gen-operator.dev/pause",
      "Stuck",
      "Broken",
    ]);
  });

  test(
    "pass the generator without warnings and compile",
    async () => assert.equal(await checkGuides(guides, CRD), []),
    { timeoutMs: 240_000 },
  );

  test(
    "are rejected for unknown spec fields, unknown primary fields, and type errors in code",
    async () => {
      const files = [
        "spec:\n  primary: example.com/v1/Shop\n  dependent: {}",
        "spec:\n  primary: example.com/v1/Shop\n  dependents:\n    configMap: { resource: v1/ConfigMap, reconcilePrecondition: { when: primary.spec.hots !== undefined } }",
      ].map((spec) => `apiVersion: gen-operator.dev/v1alpha1\nkind: Workflow\nmetadata: { name: shop }\n${spec}\n`);
      const text = [
        ...files.map((code) => `\`\`\`yaml workflow.yaml\n${code}\`\`\`\n`),
        "```ts src/shop/page.ts\nexport const page: string = 1;\n```\n",
      ].join("\n");
      const problems = await checkGuides([{ name: "wrong", text }], CRD);
      for (const expected of ["unknown-field", "when-type", "wrong-2/src/shop/page.ts(1,14): error TS2322"])
        assert.ok(
          problems.some((problem) => problem.includes(expected)),
          `${expected} in\n${problems.join("\n")}`,
        );
    },
    { timeoutMs: 240_000 },
  );
});

function brokenLinks(page: string, text: string): string[] {
  const links = [...text.matchAll(/\]\((?!\w+:)([^)\s]+)\)/g)].map(([, link = ""]) => link);
  return links.flatMap((link) => {
    const [path = "", heading] = link.split("#");
    const target = join(repositoryRoot, path === "" ? page : join(dirname(page), path));
    const isThere = existsSync(target) && (heading === undefined || headingsOf(target).includes(heading));
    return isThere ? [] : [`${page}: ${link}`];
  });
}

/** Returns the anchors of a page, as GitHub makes them from its headings. */
function headingsOf(file: string): string[] {
  const text = readFileSync(file, "utf8").replaceAll(/^```.*?^```/gms, "");
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(/\s/g, "-"),
  );
}

function wrongYaml(page: string, path: string, code: string): string[] {
  return parseAllDocuments(code).flatMap((document) => {
    const [error] = document.errors;
    if (error !== undefined) return [`${page}: ${path}: ${error.message}`];
    const { apiVersion, kind, metadata } = document.toJS() as { [name: string]: unknown };
    const isObject = typeof apiVersion === "string" && typeof kind === "string";
    return isObject && (metadata !== undefined || kind === "Kustomization")
      ? []
      : [`${page}: ${path}: no object of Kubernetes`];
  });
}

/** The commands of the packages with their flags, as recorded. */
const commands = new Map(
  surface("commands")
    .split("\n\n")
    .map((section) => {
      const [name = "", ...lines] = section.trim().split("\n");
      return [name, new Set(lines.flatMap((line) => line.match(/(?<=\s)--?[\w-]+/g) ?? []))] as const;
    }),
);
const settings = surface("settings");
const scripts = (JSON.parse(read("templates/project/package.json")) as { scripts: { [name: string]: string } }).scripts;

/** Returns the commands, flags, scripts and variables of a page that do not exist. */
function unknownWords(text: string): string[] {
  const blocks = fencesOf("", text);
  const lines = blocks.filter(({ info }) => info === "sh").flatMap(({ code }) => code.split("\n"));
  const inline = [...text.replaceAll(/^```.*?^```/gms, "").matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
  const yaml = blocks.filter(({ info }) => info.startsWith("yaml")).flatMap(({ code }) => code.split("\n"));
  return [
    ...[...lines, ...inline].flatMap(unknownInCommand),
    ...yaml.flatMap((line) => unknownSettings(/^\s*(?:- |value: )(--\S+)/.exec(line)?.[1] ?? "")),
    ...inline.filter((code) => /^--[\w-]+$/.test(code) && !isFlag(code)).map((flag) => `no flag ${flag}`),
  ];
}

function unknownInCommand(line: string): string[] {
  const command = line.replace(/^(?:[A-Z_]+=\S+ )*(?:npx )?/, "").replace(/ [|#].*$/, "");
  const variables = [...line.matchAll(/\b((?:CONTROLLERS|DEBUG|LOG|LEADER)_[A-Z_]+)=/g)].map(([, name = ""]) => name);
  const unset = variables.filter((name) => !settings.includes(` ${name.replace("_SHOP_", "_NAME_")}\n`));
  return [...unset.map((name) => `no variable ${name}`), ...unknownInProgram(command)];
}

function unknownInProgram(command: string): string[] {
  const [own = "", passed = ""] = command.split(/ -- /);
  const script = /^npm (?:run )?(start|test|(?<=run )[\w-]+)/.exec(own)?.[1];
  if (script !== undefined) {
    const run = scripts[script];
    if (run === undefined) return [`npm run ${script}: no script`];
    return run.startsWith("gen-operator") ? unknownInProgram(`${run} ${passed}`) : unknownSettings(passed);
  }
  if (own.startsWith("@gen-operator/apiserver")) return unknownFlags("apiserver", own);
  const words = /^gen-operator ((?:[a-z]+ ?)*)/.exec(own)?.[1]?.trim().split(" ");
  if (words === undefined || words[0] === "") return [];
  const name = [words.slice(0, 2), words.slice(0, 1)].map((each) => `gen-operator ${each.join(" ")}`);
  const known = name.find((each) => commands.has(each));
  if (known === undefined) return [`${name[1]}: no command`];
  return [...unknownFlags(known, own), ...(known === "gen-operator dev" ? unknownSettings(passed) : [])];
}

function unknownFlags(command: string, line: string): string[] {
  const flags = line.match(/(?<=\s)--[\w-]+/g) ?? [];
  return flags.filter((flag) => !commands.get(command)?.has(flag)).map((flag) => `${command}: no flag ${flag}`);
}

/** Whether an operator, a command of the packages or kubectl has a flag. */
function isFlag(flag: string): boolean {
  const isOfCommand = [...commands.values()].some((flags) => flags.has(flag));
  return isOfCommand || unknownSettings(flag).length === 0 || KUBECTL_FLAGS.includes(flag);
}

/** Returns the flags that no operator has. */
function unknownSettings(line: string): string[] {
  const flags = (line.match(/(?<=^|\s)--[\w.-]+/g) ?? []).map((flag) =>
    flag.replace(/^--controllers\.\w+\./, "--controllers.NAME."),
  );
  return flags.filter((flag) => !settings.split(/\s/).includes(flag)).map((flag) => `no setting ${flag}`);
}

function unknownNames(text: string): string[] {
  const names = surface("object-names");
  const reasons = surface("reasons");
  // kubectl removes a label or an annotation whose name has a hyphen behind it.
  const keys = (text.match(/gen-operator\.dev\/[\w-]+/g) ?? []).map((key) => key.replace(/(?<!held)-$/, ""));
  const events = [...text.matchAll(/\bEvents? `(\w+)`/g)].map(([, name = ""]) => name);
  const conditions = [...text.matchAll(/\breason `(\w+)`/g)].map(([, name = ""]) => name);
  return [
    ...keys.filter((key) => !names.split(/[\s…]/).includes(key)),
    ...events.filter((name) => !new RegExp(`^${name}:`, "m").test(reasons)),
    ...conditions.filter((name) => !new RegExp(`^${name}$`, "m").test(reasons)),
  ];
}

import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { formatAnnotation, formatAnnotations, formatJson } from "#generator/cli/print.js";
import type { Diagnostic } from "#generator/diagnostic.js";
import { runCommand } from "../../support/command-line.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const wrong = join(repositoryRoot, "fixtures/rejected/unknown-dependent");

function problemAt(line: number, severity: Diagnostic["severity"]): Diagnostic {
  return { severity, rule: "x", message: `m${line}`, position: { file: "a.yaml", line, column: 1 } };
}

suite("--format", (test) => {
  test("json prints one document with the position of every diagnostic", async () => {
    const { status, stdout, stderr } = await runCommand(wrong, "generate", "--format", "json");
    const printed = JSON.parse(stdout) as { diagnostics: Record<string, unknown>[]; exitCode: number };
    assert.is(stderr, "");
    assert.is(status, 1);
    assert.is(printed.exitCode, 1);
    const [first = {}] = printed.diagnostics;
    assert.equal([first["severity"], first["rule"], first["file"]], ["error", "unknown-dependent", "workflow.yaml"]);
    assert.type(first["line"], "number");
    assert.type(first["column"], "number");
  });

  test("json lists created and stale files", async () => {
    await using folder = await createTemporaryFolder();
    await cp(join(repositoryRoot, "fixtures/samples/webpage/crds"), join(folder.path, "crds"), { recursive: true });
    await writeFile(
      join(folder.path, "workflow.yaml"),
      "apiVersion: gen-operator.dev/v1alpha1\nkind: Workflow\nmetadata: { name: webpage }\n" +
        "spec: { primary: example.com/v1/WebPage }\n",
    );
    const stale = await runCommand(folder.path, "generate", "--check", "--format", "json");
    assert.is(stale.status, 1);
    const missing = JSON.parse(stale.stdout) as { files: { stale: string[] } };
    assert.is(missing.files.stale.includes("src/generated/index.ts"), true);
    const written = await runCommand(folder.path, "generate", "--format", "json");
    assert.is(written.status, 0);
    const { files } = JSON.parse(written.stdout) as { files: { created: string[] } };
    assert.is(files.created.includes("src/generated/index.ts"), true);
  });

  test("github prints paths relative to GITHUB_WORKSPACE", async () => {
    const before = process.env["GITHUB_WORKSPACE"];
    process.env["GITHUB_WORKSPACE"] = repositoryRoot;
    try {
      const { status, stdout } = await runCommand(repositoryRoot, "generate", "--format", "github", "--project", wrong);
      assert.is(status, 1);
      assert.match(
        stdout,
        /^::error file=fixtures\/rejected\/unknown-dependent\/workflow\.yaml,line=\d+,col=\d+,title=unknown-dependent::/,
      );
    } finally {
      if (before === undefined) delete process.env["GITHUB_WORKSPACE"];
      else process.env["GITHUB_WORKSPACE"] = before;
    }
  });

  test("json limits diagnostics to 50 and counts the omitted ones", () => {
    const problems = Array.from({ length: 60 }, (_, index) => problemAt(index + 1, index < 40 ? "error" : "warning"));
    const printed = JSON.parse(formatJson({ diagnostics: problems, exitCode: 1 })) as Record<string, unknown[]>;
    assert.is(printed["diagnostics"]?.length, 50);
    assert.equal(printed["omitted"], [{ file: "a.yaml", errors: 0, warnings: 10 }]);
    assert.is("omitted" in JSON.parse(formatJson({ diagnostics: problems.slice(0, 50), exitCode: 1 })), false);
  });

  test("github limits annotations to 10 of each kind, and logs and counts the rest", () => {
    const problems = Array.from({ length: 60 }, (_, index) => problemAt(index + 1, index < 12 ? "error" : "warning"));
    const lines = formatAnnotations(problems, ".");
    const annotations = lines.filter((line) => line.startsWith("::"));
    assert.is(annotations.filter((line) => line.startsWith("::error ")).length, 10);
    assert.is(annotations.filter((line) => line.startsWith("::warning ")).length, 10);
    assert.ok(lines.includes("::error title=more-problems::3 more errors are in the log of this step"));
    assert.ok(lines.includes("- a.yaml:10:1: error x: m10"));
    // 60 problems, of which 10 are beyond the limit of a file and counted by one more.
    assert.ok(lines.includes("- warning more-problems: a.yaml has 10 warnings more"));
    assert.is(formatAnnotations(problems.slice(0, 10), ".").length, 10);
  });

  test("github escapes messages, so that they cannot start annotations", () => {
    const message = "a%\r\n::error title=b::c";
    const position = { file: "a,b:c.yaml", line: 1, column: 2 };
    const printed = formatAnnotation({ severity: "warning", rule: "known-kind", message, position }, ".");
    assert.is(printed.split("\n").length, 1);
    assert.match(printed, /^::warning file=a%2Cb%3Ac\.yaml,line=1,col=2,title=known-kind::a%25%0D%0A::error/);
  });
});

const sample = join(repositoryRoot, "fixtures/samples/webpage");
const crd = "crds/webpages.example.com.yaml";

interface Printed {
  diagnostics: { severity: string; rule: string; file?: string; line?: number }[];
  exitCode: number;
  [part: string]: unknown;
}

/** Runs a command for a program, which has one document to read. */
async function printed(folder: string, ...args: string[]): Promise<Printed> {
  const { status, stdout, stderr } = await runCommand(folder, ...args, "--format", "json");
  assert.is(stderr, "");
  const outcome = JSON.parse(stdout) as Printed;
  assert.is(outcome.exitCode, status);
  return outcome;
}

async function annotations(folder: string, ...args: string[]): Promise<string[]> {
  const { stdout, stderr } = await runCommand(folder, ...args, "--format", "github");
  assert.is(stderr, "");
  return stdout.split("\n").filter((line) => line !== "");
}

suite("--format of every command", (test) => {
  test("reports written files and problems of init and add", async () => {
    await using folder = await createTemporaryFolder();
    await cp(join(sample, crd), join(folder.path, "in/page.yaml"), { recursive: true });
    await writeFile(join(folder.path, "in/other.yaml"), "kind: ConfigMap\n");
    const made = await printed(folder.path, "init", "pages", "--crd", "in");
    assert.equal(
      made.diagnostics.map(({ rule, file }) => [rule, file]),
      [["not-a-crd", "../in/other.yaml"]],
    );
    assert.ok((made["written"] as { created: string[] }).created.includes("crds/page.yaml"));
    assert.ok((made["files"] as { created: string[] }).created.includes("src/generated/index.ts"));
    const wrong = await annotations(folder.path, "init", "others", "--crd", "in/other.yaml");
    assert.match(wrong[1] ?? "", /^::warning file=in\/other\.yaml,line=1,col=1,title=not-a-crd::/);
    assert.match(wrong[0] ?? "", /^::error title=no-crds::/);

    const project = join(folder.path, "pages");
    const added = await printed(project, "add", "dependent", "web", "--resource", "v1/Secret");
    assert.equal(added["written"], { created: [], updated: ["workflow.yaml"], kept: [] });
    const args = ["--resource", "v1/Pod", "--project", "pages"];
    const [twice = ""] = await annotations(folder.path, "add", "dependent", "web", ...args);
    assert.match(twice, /^::error file=pages\/workflow\.yaml,line=\d+,col=\d+,title=duplicate-name::/);
    const [none = ""] = await annotations(project, "add", "controller", "other", "--crd", "../in/other.yaml");
    assert.match(none, /^::error title=no-crds::/);
  });

  test("reports results or problems of suggest and graph", async () => {
    const shown = await printed(sample, "graph");
    assert.match(String(shown["graph"]), "deployment");
    assert.equal((await printed(sample, "suggest", "caches", "--dry-run"))["updated"], []);
    assert.match((await annotations(sample, "graph")).join("\n"), "deployment");
    for (const command of [["graph"], ["suggest", "caches"]]) {
      const [first] = (await printed(wrong, ...command)).diagnostics;
      assert.equal([first?.rule, first?.file], ["unknown-dependent", "workflow.yaml"]);
      assert.match((await annotations(wrong, ...command))[0] ?? "", "workflow.yaml,line=");
    }
    assert.is((await printed(sample, "graph", "--controller", "web")).diagnostics[0]?.rule, "unknown-controller");
  });

  test("reports breaking changes of diff at their position, and why a baseline cannot be read", async () => {
    await using folder = await createTemporaryFolder();
    for (const state of ["old", "new"]) {
      await cp(join(sample, "crds"), join(folder.path, state, "crds"), { recursive: true });
      await cp(join(sample, "workflow.yaml"), join(folder.path, state, "workflow.yaml"));
    }
    const project = join(folder.path, "new");
    const edit = async (file: string, from: string, to: string) => {
      const text = await readFile(join(project, file), "utf8");
      assert.ok(text.includes(from), from);
      await writeFile(join(project, file), text.replace(from, to));
    };
    await edit(crd, "required: [html]", "required: [html, host]");
    await edit("workflow.yaml", "resource: v1/ConfigMap", "resource: v1/Secret");
    const found = await annotations(folder.path, "diff", "--project", "new", "--against", "old");
    const lines = (await readFile(join(project, crd), "utf8")).split("\n");
    const place = (file: string, line = "\\d+") => `file=new/${file},line=${line},col=\\d+,title=breaking-change`;
    const hostLine = String(lines.findIndex((line) => line.trim() === "host:") + 1);
    const wanted = [
      `^::error ${place(crd, hostLine)}::webpages\\.example\\.com v1: spec\\.host: `,
      `^::error ${place("workflow.yaml")}::.*configMap: `,
    ];
    for (const pattern of wanted) assert.match(found.join("\n"), new RegExp(pattern, "m"));
    const { changes } = await printed(folder.path, "diff", "--project", "new", "--against", "old");
    assert.ok((changes as { file?: string; line?: number }[]).every(({ file, line }) => file !== undefined && line));

    const [unread] = (await printed(project, "diff", "--against", "../nowhere")).diagnostics;
    assert.is(unread?.rule, "unreadable-baseline");
    await writeFile(join(folder.path, "old/workflow.yaml"), "kind: Workflow\n");
    const [rejected = ""] = await annotations(project, "diff", "--against", "../old");
    assert.match(rejected, /^::error title=[a-z-]+::workflow\.yaml:\d+:\d+: /);
  });

  test("github prints the position of a file outside of the checkout in the message", async () => {
    const position = { file: "../elsewhere/a.yaml", line: 3, column: 4 };
    const outside = formatAnnotation({ severity: "error", rule: "x", message: "m", position }, ".");
    assert.is(outside, "::error title=x::../elsewhere/a.yaml:3:4: m");
    const piped = formatAnnotation(
      { severity: "error", rule: "x", message: "m", position: { ...position, file: "<stdin>" } },
      ".",
    );
    assert.is(piped, "::error title=x::<stdin>:3:4: m");
  });
});

suite("colors", (test) => {
  test("are printed with FORCE_COLOR and not into a pipe", async () => {
    const before = process.env["FORCE_COLOR"];
    try {
      delete process.env["FORCE_COLOR"];
      assert.not.match((await runCommand(wrong, "generate")).stderr, "\u001b");
      process.env["FORCE_COLOR"] = "1";
      const { stderr } = await runCommand(wrong, "generate");
      assert.match(stderr, /^workflow\.yaml:\d+:\d+: \u001b\[31merror unknown-dependent: \u001b\[39m/);
    } finally {
      if (before === undefined) delete process.env["FORCE_COLOR"];
      else process.env["FORCE_COLOR"] = before;
    }
  });
});

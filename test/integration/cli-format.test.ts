import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { formatAnnotation } from "#generator/cli/frame/format.js";
import { runCommand } from "../support/command-line.js";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";

const wrong = join(repositoryRoot, "fixtures/rejected/unknown-dependent");

suite("--format", (test) => {
  test("json prints one document, with every diagnostic at its place", async () => {
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

  test("json tells what was written, and what is stale", async () => {
    await using folder = await createTemporaryFolder();
    await cp(join(repositoryRoot, "fixtures/samples/webpage/crds"), join(folder.path, "crds"), { recursive: true });
    await writeFile(
      join(folder.path, "workflow.yaml"),
      "apiVersion: gen-operator.dev/v1alpha1\nkind: Workflow\nmetadata: { name: webpage }\n" +
        "spec: { primary: { crd: crds/webpages.example.com.yaml } }\n",
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

  test("github names files relative to the checkout", async () => {
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

  test("a text of a file cannot start an annotation of its own", () => {
    const message = "a%\r\n::error title=b::c";
    const position = { file: "a,b:c.yaml", line: 1, column: 2 };
    const printed = formatAnnotation({ severity: "warning", rule: "known-kind", message, position }, ".");
    assert.is(printed.split("\n").length, 1);
    assert.match(printed, /^::warning file=a%2Cb%3Ac\.yaml,line=1,col=2,title=known-kind::a%25%0D%0A::error/);
  });
});

// What `doctor` finds wrong with an installation, a project and a cluster, and what it says to do.
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { isRealApiServer, startTestApiServer } from "../../support/api/api-server.js";
import { runCommand, type CommandOutcome } from "../../support/command-line.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";
import { linkPackages } from "../../support/projects/link-packages.js";

const sample = join(repositoryRoot, "fixtures/samples/webpage");
const crdFile = join(sample, "crds/webpages.example.com.yaml");
const LONG = { timeoutMs: 90_000 };

interface PageCrd {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly versions: { name: string; served: boolean; storage: boolean; schema: { openAPIV3Schema: Schema } }[];
  };
}
interface Schema {
  type?: string;
  properties?: Record<string, Schema>;
}

/** A project with all that it needs, on a computer without a kubeconfig. */
async function createProject() {
  const folder = await createTemporaryFolder();
  for (const path of ["crds", "src", "test", "deploy", "workflow.yaml"])
    await cp(join(sample, path), join(folder.path, path), { recursive: true });
  await cp(join(repositoryRoot, "templates/project/tsconfig.json"), join(folder.path, "tsconfig.json"));
  await writeFile(join(folder.path, "package.json"), '{ "name": "webpage", "type": "module" }\n');
  await writeFile(join(folder.path, "package-lock.json"), "{}\n");
  await linkPackages(folder.path);
  const before = { HOME: process.env["HOME"], KUBECONFIG: process.env["KUBECONFIG"] };
  process.env["HOME"] = folder.path;
  delete process.env["KUBECONFIG"];
  return {
    path: folder.path,
    doctor: (...args: string[]) => runCommand(folder.path, "doctor", ...args),
    async [Symbol.asyncDispose]() {
      for (const [name, value] of Object.entries(before))
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      await folder[Symbol.asyncDispose]();
    },
  };
}

async function changedCrd(change: (crd: PageCrd) => void): Promise<PageCrd> {
  const crd = parse(await readFile(crdFile, "utf8")) as PageCrd;
  change(crd);
  return crd;
}

/** The lines of a check: the first with its outcome, then what belongs to it. */
function check({ stdout }: CommandOutcome, name: string): string {
  const lines = stdout.split("\n");
  const first = lines.findIndex((line) => line.slice(9).startsWith(`${name}: `));
  const end = lines.findIndex((line, index) => index > first && !line.startsWith("   "));
  return first === -1 ? "" : lines.slice(first, end).join("\n");
}

suite("doctor without a cluster", (test) => {
  test(
    "passes for a complete project and lists skipped checks",
    async () => {
      await using project = await createProject();
      const outcome = await project.doctor();
      assert.is(outcome.status, 0, outcome.stdout);
      assert.match(outcome.stdout, /^8 ok, 3 skipped$/m);
      assert.match(check(outcome, "cluster"), /^skipped {2}cluster: kubeconfig not found\n.*--kubeconfig FILE/);
    },
    LONG,
  );

  test.thorough(
    "fails for a lock file with another version, and warns if there is none",
    async () => {
      await using project = await createProject();
      const locked = { packages: { "node_modules/@gen-operator/runtime": { version: "0.0.9" } } };
      await writeFile(join(project.path, "package-lock.json"), JSON.stringify(locked));
      const differs = await project.doctor();
      assert.is(differs.status, 1);
      assert.match(check(differs, "lock file"), /^failed .*package-lock\.json has @gen-operator\/runtime 0\.0\.9/);
      await rm(join(project.path, "package-lock.json"));
      const missing = await project.doctor();
      assert.is(missing.status, 0);
      assert.match(check(missing, "lock file"), /^warning .*\n.*npm install, and commit package-lock\.json/);
    },
    LONG,
  );

  test.thorough(
    "fails if packages are not installed",
    async () => {
      await using project = await createProject();
      await rm(join(project.path, "node_modules"));
      const nothing = await project.doctor();
      assert.is(nothing.status, 1);
      assert.match(check(nothing, "TypeScript"), /^failed .*typescript is not installed/);
      assert.match(check(nothing, "packages"), /^failed .*@gen-operator\/runtime is not installed/);
    },
    LONG,
  );

  test.thorough(
    "fails if the version of the runtime differs from the generator",
    async () => {
      await using project = await createProject();
      await rm(join(project.path, "node_modules"));
      const runtime = join(project.path, "node_modules/@gen-operator/runtime");
      await mkdir(runtime, { recursive: true });
      await writeFile(join(runtime, "package.json"), '{ "name": "@gen-operator/runtime", "version": "7.1.0" }');
      const outcome = await project.doctor();
      assert.is(outcome.status, 1);
      assert.match(
        check(outcome, "packages"),
        /^failed .*version mismatch: .*the project has @gen-operator\/runtime 7\.1\.0\n.*npm install @gen-operator\/runtime@0\.1\.0/,
      );
    },
    LONG,
  );

  test.thorough(
    "fails for incompatible compiler options, and warns about weak ones",
    async () => {
      await using project = await createProject();
      const write = (compilerOptions: object) =>
        writeFile(join(project.path, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["src"] }));
      const good = { module: "NodeNext", strict: true, exactOptionalPropertyTypes: true, isolatedModules: true };
      const cases: [options: object, outcome: RegExp][] = [
        [good, /^ok /],
        [{ ...good, module: "ESNext", moduleResolution: "Bundler" }, /^ok /],
        [{ ...good, module: "CommonJS" }, /^failed .*\n.*"module": "NodeNext": generated code consists of ES modules/],
        [{ ...good, module: "ESNext", moduleResolution: "Node10" }, /^failed .*\n.*"moduleResolution": "NodeNext"/],
        [{ ...good, strict: false }, /^warning .*\n.*"strict": true/],
        [{ ...good, strictNullChecks: false }, /^warning .*\n.*"strict": true/],
        [{ module: "NodeNext", strict: true }, /^warning .*\n.*exactOptional.*\n.*isolatedModules.*\n.*→ set "exact/],
        [{ ...good, module: "Nonsense" }, /^failed .*--module/],
      ];
      for (const [options, outcome] of cases) {
        await write(options);
        assert.match(check(await project.doctor(), "tsconfig.json"), outcome, JSON.stringify(options));
      }
      await writeFile(join(project.path, "tsconfig.json"), '{\n  "include": ["src"]\n  "exclude": []\n}\n');
      assert.match(check(await project.doctor(), "tsconfig.json"), /^failed .* tsconfig\.json:3:3: ',' expected\./);
      await rm(join(project.path, "tsconfig.json"));
      assert.match(check(await project.doctor(), "tsconfig.json"), /^failed .*not found in the project/);
    },
    LONG,
  );

  test.thorough(
    "reports stale code, missing stubs, orphaned stubs and spec errors",
    async () => {
      await using project = await createProject();
      const workflow = join(project.path, "workflow.yaml");
      const text = await readFile(workflow, "utf8");
      await writeFile(workflow, text.replace("primary.spec.exposed === true", "primary.spec.exposed !== false"));
      await rm(join(project.path, "src/webpage/dependents/service.ts"));
      const stale = await project.doctor();
      assert.is(stale.status, 1);
      assert.match(
        check(stale, "generated code"),
        /^failed .*1 file is stale\n *src\/generated\/webpage\/workflow\.ts\n.*run npx gen-operator generate$/,
      );
      assert.match(check(stale, "stubs"), /^failed .*imports is missing\n *src\/webpage\/dependents\/service\.ts\n/);
      await cp(join(sample, "src/webpage/dependents"), join(project.path, "src/webpage/dependents"), {
        recursive: true,
      });
      await writeFile(workflow, text);
      const stub = join(project.path, "src/webpage/dependents/former.ts");
      await writeFile(stub, "export const helper = 1;\n");
      const orphan = await project.doctor();
      assert.is(orphan.status, 0, orphan.stdout);
      assert.match(
        check(orphan, "stubs"),
        /^warning .*1 file of an earlier spec is no longer imported\n *src\/webpage\/dependents\/former\.ts\n/,
      );
      await writeFile(join(project.path, "src/webpage/extra.ts"), 'import "./dependents/former.js";\n');
      assert.match(check(await project.doctor(), "stubs"), /^ok /);
      await writeFile(workflow, text.replace("dependsOn: [", "dependsOn: [nobody, "));
      const wrong = await project.doctor("--project", ".");
      assert.match(check(wrong, "spec"), /^failed {3}spec: 1 error\n.*run npx gen-operator generate to see it$/);
      assert.match(check(wrong, "generated code"), /^skipped /);
    },
    LONG,
  );

  test(
    "prints JSON with the same exit code",
    async () => {
      await using project = await createProject();
      await rm(join(project.path, "tsconfig.json"));
      const { status, stdout, stderr } = await project.doctor("--format", "json");
      const { checks, exitCode } = JSON.parse(stdout) as {
        checks: { name: string; outcome: string; advice?: string }[];
        exitCode: number;
      };
      assert.equal([status, exitCode, stderr], [1, 1, ""]);
      const failed = checks.filter(({ outcome }) => outcome === "failed");
      assert.equal(
        failed.map(({ name }) => name),
        ["tsconfig.json"],
      );
      assert.type(failed[0]?.advice, "string");
    },
    LONG,
  );
});

suite("doctor with a cluster", (test) => {
  test(
    "passes if the cluster has the CRDs of the project",
    async () => {
      await using server = await startTestApiServer({ crds: [crdFile] });
      await using project = await createProject();
      const outcome = await project.doctor("--kubeconfig", server.kubeconfig);
      assert.is(outcome.status, 0, outcome.stdout);
      assert.match(outcome.stdout, /^11 ok$/m);
      assert.match(check(outcome, "cluster"), isRealApiServer ? /user "admin"/ : /user "gen-operator-admin"/);
      assert.match(check(outcome, "kinds"), "the cluster serves all 5 kinds of the project, with the same schemas");
      assert.match(
        check(outcome, "rights"),
        /has all \d+ permissions .*; to check the operator, use --as system:serviceaccount:/,
      );
    },
    LONG,
  );

  test.thorough(
    "names a CRD that the cluster lacks and the command that applies it",
    async () => {
      await using server = await startTestApiServer();
      await using project = await createProject();
      const outcome = await project.doctor("--kubeconfig", server.kubeconfig);
      assert.is(outcome.status, 1);
      assert.match(
        check(outcome, "CRD webpages.example.com"),
        /^failed .*CRD not found in the cluster\n.*kubectl apply -f deploy\/generated\/crds\/webpages\.example\.com\.yaml$/,
      );
      assert.not.match(outcome.stdout, "kind webpages.example.com");
    },
    LONG,
  );

  test(
    "lists the path of each field that differs between the schemas",
    async () => {
      const crd = await changedCrd(({ spec }) => {
        const properties = spec.versions[0]?.schema.openAPIV3Schema.properties?.["spec"]?.properties ?? {};
        delete properties["exposed"];
        properties["extra"] = { type: "string" };
      });
      await using server = await startTestApiServer({ crds: [crd] });
      await using project = await createProject();
      const outcome = await project.doctor("--kubeconfig", server.kubeconfig);
      assert.is(outcome.status, 1);
      const found = check(outcome, "CRD webpages.example.com");
      assert.match(found, /\n *v1: spec\.exposed: removed; the API server drops its values\n/);
      assert.match(found, /\n *v1: spec\.extra: added\n/);
    },
    LONG,
  );

  test.thorough(
    "warns if the cluster only has more fields, and fails if it does not serve the version",
    async () => {
      const more = await changedCrd(({ spec }) => {
        const properties = spec.versions[0]?.schema.openAPIV3Schema.properties?.["spec"]?.properties ?? {};
        properties["extra"] = { type: "string" };
      });
      const older = await changedCrd(({ spec }) => {
        const [version] = spec.versions;
        if (version === undefined) throw new Error("the sample has a version");
        spec.versions.unshift({ ...structuredClone(version), name: "v1beta1" });
        version.served = false;
        version.storage = false;
      });
      await using wider = await startTestApiServer({ crds: [more] });
      await using other = await startTestApiServer({ crds: [older] });
      await using project = await createProject();
      const warned = await project.doctor("--kubeconfig", wider.kubeconfig);
      assert.is(warned.status, 0, warned.stdout);
      assert.match(check(warned, "CRD webpages.example.com"), /^warning /);
      const failed = await project.doctor("--kubeconfig", other.kubeconfig);
      assert.is(failed.status, 1);
      assert.match(
        check(failed, "kind webpages.example.com"),
        /^failed .*does not serve example\.com\/v1 WebPage\n.*version that the cluster serves/,
      );
      const found = check(failed, "CRD webpages.example.com");
      assert.match(found, "v1: is no longer served");
      assert.match(found, "v1: is no longer the stored version");
    },
    LONG,
  );

  test.thorough(
    "fails if the server, kubeconfig or context is unavailable, and skips the other checks",
    async () => {
      const server = await startTestApiServer();
      await using project = await createProject();
      const kubeconfig = join(project.path, "kubeconfig");
      await cp(server.kubeconfig, kubeconfig);
      const cases: [args: string[], message: RegExp][] = [
        [["--kubeconfig", "nowhere"], /^failed .*nowhere/],
        [["--kubeconfig", kubeconfig, "--context", "other"], /^failed .*"?other"?/],
      ];
      await server.close();
      for (const [args, message] of [
        ...cases,
        [["--kubeconfig", kubeconfig], /got no answer.*\n.*→ check that/],
      ] as const) {
        const outcome = await project.doctor(...args);
        assert.is(outcome.status, 1, args.join(" "));
        assert.match(check(outcome, "cluster"), message);
        assert.match(check(outcome, "rights"), /^skipped /);
      }
    },
    LONG,
  );
});

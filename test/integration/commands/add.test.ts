// `gen-operator add`: the spec gets what was asked for, and nothing else in it changes.
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fastCompiler } from "../../support/projects/compile.js";
import { runCommand } from "../../support/command-line.js";
import { startTestApiServer } from "../../support/api/api-server.js";
import { createPagesProject } from "../../support/projects/new-project.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";

const LONG = { timeoutMs: 90_000 };

/** Lists a project without its packages, beside which others keep what they compiled. */
async function filesOf(folder: string): Promise<string[]> {
  return (await readdir(folder, { recursive: true })).filter((file) => !file.startsWith("node_modules/"));
}

suite("gen-operator add", (test) => {
  test(
    "adds a dependent with its stub, keeps all other lines, and rejects another dependent of that name",
    async () => {
      await using project = await createPagesProject();
      const spec = join(project.path, "workflow.yaml");
      const before = await readFile(spec, "utf8");
      const args = ["add", "dependent", "deployment", "--resource", "apps/v1/Deployment", "--depends-on", "configMap"];
      const { status, stdout, stderr } = await runCommand(project.path, ...args);
      assert.is(status, 0, stderr);
      assert.match(stdout, /^updated workflow\.yaml$/m);
      assert.match(stdout, /^created src\/webpage\/dependents\/deployment\.ts$/m);
      const after = await readFile(spec, "utf8");
      const added = "    deployment:\n      resource: apps/v1/Deployment\n      dependsOn: [configMap]\n";
      assert.is(after.replace(added, ""), before);

      const again = await runCommand(project.path, ...args);
      assert.is(again.status, 0);
      assert.match(again.stdout, /^deployment already exists$/m);
      assert.is(await readFile(spec, "utf8"), after);
      const other = await runCommand(project.path, "add", "dependent", "deployment", "--resource", "v1/Pod");
      assert.is(other.status, 1);
      assert.match(
        other.stderr,
        /^workflow\.yaml:\d+:\d+: error duplicate-name: "deployment" already exists in dependents/,
      );
    },
    LONG,
  );

  test(
    "accepts lists separated by spaces or commas",
    async () => {
      await using project = await createPagesProject();
      for (const [name, ...dependencies] of [
        ["first", "configMap"],
        ["second", "configMap,first"],
        ["third", "first,second", "configMap"],
      ] as const) {
        const args = ["add", "dependent", name, "--resource", "v1/ConfigMap", "--depends-on", ...dependencies];
        const { status, stderr } = await runCommand(project.path, ...args);
        assert.is(status, 0, stderr);
      }
      const source = ["add", "source", "pods", "--resource", "v1/Pod", "--label", "example.com/page"];
      const { status, stderr } = await runCommand(project.path, ...source, "--namespaces", "a,b");
      assert.is(status, 0, stderr);
      const spec = await readFile(join(project.path, "workflow.yaml"), "utf8");
      assert.match(spec, "dependsOn: [configMap, first]\n");
      assert.match(spec, "dependsOn: [first, second, configMap]\n");
      assert.match(spec, "namespaces: [a, b]");
    },
    LONG,
  );

  test(
    "adds a Job with mode: once, without a warning",
    async () => {
      await using project = await createPagesProject();
      const args = ["add", "dependent", "migration", "--resource", "batch/v1/Job", "--ready"];
      const { status, stderr } = await runCommand(project.path, ...args);
      assert.is(status, 0, stderr);
      assert.not.match(stderr, "immutable-kind");
      const spec = await readFile(join(project.path, "workflow.yaml"), "utf8");
      assert.ok(spec.includes("    migration:\n      resource: batch/v1/Job\n      mode: once\n"), spec);
    },
    LONG,
  );

  test(
    "adds an event source and a controller, and requires --controller if there are several",
    async () => {
      await using project = await createPagesProject();
      const source = await runCommand(
        project.path,
        "add",
        "source",
        "pods",
        "--resource",
        "v1/Pod",
        "--label",
        "example.com/page",
      );
      assert.is(source.status, 0, source.stderr);
      const spec = await readFile(join(project.path, "workflow.yaml"), "utf8");
      assert.match(
        spec,
        /^ {2}eventSources:\n {4}pods: \{ resource: v1\/Pod, mapping: \{ label: \{ name: example\.com\/page \} \}, labelSelector: example\.com\/page \}$/m,
      );

      const args = ["add", "controller", "page-audit", "--primary", "example.com/v1/WebPage"];
      const controller = await runCommand(project.path, ...args);
      assert.is(controller.status, 0, controller.stderr);
      assert.match(controller.stdout, /^created page-audit\.workflow\.yaml$/m);
      assert.ok((await readdir(join(project.path, "src"))).includes("page-audit"));
      assert.is((await runCommand(project.path, ...args)).status, 1);
      const ambiguous = await runCommand(project.path, "add", "dependent", "service", "--resource", "v1/Service");
      assert.is(ambiguous.status, 1);
      assert.match(
        ambiguous.stderr,
        /the project has several controllers\n {2}set --controller to one of page-audit, webpage/,
      );
      const named = ["--controller", "page-audit"];
      assert.is(
        (await runCommand(project.path, "add", "dependent", "secret", "--resource", "v1/Secret", ...named)).status,
        0,
      );
      assert.match(
        await readFile(join(project.path, "page-audit.workflow.yaml"), "utf8"),
        /dependents:\n {4}secret: \{ resource: v1\/Secret \}/,
      );
      assert.is((await runCommand(project.path, "generate", "--check")).status, 0);
    },
    LONG,
  );

  test(
    "adds a controller with a CRD from a file, folder or glob, and does not overwrite other CRDs",
    async () => {
      await using project = await createPagesProject();
      const text = await readFile(
        join(repositoryRoot, "fixtures/samples/podwatch/crds/podwatches.example.com.yaml"),
        "utf8",
      );
      await mkdir(join(project.path, "given/other"), { recursive: true });
      await writeFile(join(project.path, "given/watch.yaml"), text);
      await writeFile(join(project.path, "given/kustomization.yaml"), "resources: [watch.yaml]\n");
      const { status, stdout, stderr } = await runCommand(project.path, "add", "controller", "watch", "--crd", "given");
      assert.is(status, 0, stderr);
      assert.match(stdout, /^created crds\/watch\.yaml\ncreated watch\.workflow\.yaml$/m);
      assert.match(stderr, /^given\/kustomization\.yaml:1:1: warning not-a-crd: /);
      assert.is(await readFile(join(project.path, "crds/watch.yaml"), "utf8"), text);
      assert.match(
        await readFile(join(project.path, "watch.workflow.yaml"), "utf8"),
        "primary: example.com/v1/PodWatch\n",
      );

      const again = await runCommand(project.path, "add", "controller", "again", "--crd", "given/*atch.yaml");
      assert.is(again.status, 0, again.stderr);
      assert.match(again.stdout, /^created again\.workflow\.yaml\nkept {4}crds\/watch\.yaml$/m);

      const before = await filesOf(project.path);
      await writeFile(join(project.path, "given/other/watch.yaml"), `# another\n${text}`);
      const cases: [args: string[], status: number, message: RegExp][] = [
        [
          ["--crd", "given/other"],
          1,
          /refused to overwrite crds\/watch\.yaml, which differs from given\/other\/watch\.yaml/,
        ],
        [["--crd", "given/none.yaml"], 1, /file "given\/none\.yaml" not found/],
        [["--crd", "given/*.yaml", "--primary", "example.com/v1/Pod"], 1, /unknown-kind/],
        [[], 2, /one of --primary, --crd, or --from-cluster is required/],
      ];
      for (const [args, code, message] of cases) {
        const outcome = await runCommand(project.path, "add", "controller", "third", ...args);
        assert.is(outcome.status, code, outcome.stderr);
        assert.match(outcome.stderr, message);
      }
      await rm(join(project.path, "given/other/watch.yaml"));
      assert.equal(await filesOf(project.path), before);
    },
    LONG,
  );

  test.thorough(
    "adds a controller for a kind from a cluster, and requires --primary if there are several",
    async () => {
      await using project = await createPagesProject();
      const crds = ["podwatch/crds/podwatches.example.com.yaml", "external/crds/tenants.example.com.yaml"];
      await using server = await startTestApiServer({ crds: crds.map((crd) => `fixtures/samples/${crd}`) });
      const add = (...args: string[]) =>
        runCommand(project.path, "add", "controller", "watch", "--kubeconfig", server.kubeconfig, ...args);
      const before = await filesOf(project.path);
      const several = await add("--from-cluster", "PodWatch", "Tenant");
      assert.is(several.status, 1);
      assert.match(
        several.stderr,
        /--primary to the one that the controller reconciles: example\.com\/v1\/PodWatch, example\.com\/v1\/Tenant$/m,
      );
      assert.equal(await filesOf(project.path), before);
      const { status, stdout, stderr } = await add("--from-cluster", "PodWatch");
      assert.is(status, 0, stderr);
      assert.match(stdout, /^created crds\/podwatches\.example\.com\.yaml$/m);
    },
    LONG,
  );

  test.thorough(
    "adds external dependents and event sources of every kind, which compile",
    async () => {
      await using project = await createPagesProject();
      const add = (...args: string[]) => runCommand(project.path, "add", ...args);
      const cases: [args: string[], line: string, stub: string | undefined][] = [
        [
          ["external", "database", "--per-primary-poll", "30s", "--id-in-status", "url", "--depends-on", "configMap"],
          "    database:\n      external: { perPrimaryPoll: { every: 30s }, state: { status: url } }\n      dependsOn: [configMap]\n",
          "dependents/database.ts",
        ],
        [
          ["external", "quota", "--poll", "5m", "--read-only"],
          "    quota:\n      external: { poll: { every: 5m }, capabilities: [] }\n",
          "dependents/quota.ts",
        ],
        [["external", "ticket", "--inbound"], "    ticket:\n      external: { inbound: {} }\n", "dependents/ticket.ts"],
        [["source", "prices", "--poll", "1m"], "    prices: { poll: { every: 1m } }\n", "event-sources/prices.ts"],
        [["source", "quotes", "--per-primary-poll", "1m"], "perPrimaryPoll: { every: 1m }", "event-sources/quotes.ts"],
        [["source", "hooks", "--inbound"], "    hooks: { inbound: {} }\n", undefined],
        [
          ["external", "bill", "--event-source", "prices", "--read-only"],
          "eventSource: prices, capabilities: []",
          "dependents/bill.ts",
        ],
        [
          ["source", "pods", "--resource", "v1/Pod", "--mapped-by", "pageOf", "--namespaces", "all"],
          "    pods: { resource: v1/Pod, mapping: { function: pageOf }, namespaces: all }\n",
          "event-sources/pods.ts",
        ],
        [
          ["dependent", "ingress", "--resource", "networking.k8s.io/v1/Ingress", "--when", "primary.spec.html !== ''"],
          "reconcilePrecondition: { when: primary.spec.html !== '' }\n",
          "dependents/ingress.ts",
        ],
        [
          ["dependent", "web", "--resource", "apps/v1/Deployment", "--ready", "--depends-on", "quota", "configMap"],
          "      dependsOn: [quota, configMap]\n      readyPostcondition: ready\n",
          "dependents/web.ts",
        ],
        [["dependent", "shards", "--resource", "v1/Secret", "--bulk"], "bulk: true\n", "dependents/shards.ts"],
      ];
      for (const [args, lines, stub] of cases) {
        const { status, stdout, stderr } = await add(...args);
        assert.is(status, 0, `${args.join(" ")}: ${stderr}`);
        assert.match(await readFile(join(project.path, "workflow.yaml"), "utf8"), lines);
        if (stub !== undefined) assert.match(stdout, `created src/webpage/${stub}\n`);
      }
      assert.is(fastCompiler.compile(project.path), "");
    },
    { timeoutMs: 180_000 },
  );

  test(
    "writes nothing after an error",
    async () => {
      await using project = await createPagesProject();
      const spec = join(project.path, "workflow.yaml");
      const before = await readFile(spec, "utf8");
      const cases: [args: string[], status: number, message: RegExp][] = [
        [
          ["dependent", "web", "--resource", "apps/v1/Deploymnt"],
          1,
          /error unknown-kind: [^]*did you mean "apps\/v1\/Deployment"/,
        ],
        [["dependent", "web", "--resource", "v1/Pod", "--depends-on", "configmap"], 1, /unknown-dependent/],
        [
          ["dependent", "web", "--resource", "v1/Pod", "--controller", "webpag"],
          1,
          /controller "webpag" not found in the project\n {2}did you mean "webpage"/,
        ],
        [["dependent", "a: b", "--resource", "v1/Pod"], 2, /invalid name "a: b"/],
        [["dependent", "web", "--resource", "Pod"], 2, /invalid kind "Pod"/],
        [["dependent", "web"], 2, /resource/],
        [["controller", "audit", "--primary", "example.com/v1/WebPag"], 1, /unknown-kind/],
        [["thing", "web"], 2, /thing|dependent/],
        [["external", "web"], 2, /one of --poll, --per-primary-poll, --inbound, or --event-source is required/],
        [["external", "web", "--poll", "1m", "--inbound"], 2, /--poll and --inbound are mutually exclusive/],
        [["external", "web", "--poll", "often"], 1, /spec\.dependents\.web\.external\.poll\.every/],
        [["external", "web", "--poll", "1m", "--id-in-status", "nothing"], 1, /external-state/],
        [["external", "web", "--event-source", "prices"], 1, /dependent-source|unknown/],
        [["source", "web"], 2, /one of --resource, --poll, .* is required/],
        [["source", "web", "--poll", "1m", "--label", "a"], 2, /--namespaces require --resource/],
        [
          ["source", "pods", "--resource", "v1/Pod", "--label", "a", "--mapped-by", "f"],
          2,
          /--label and --mapped-by are mutually exclusive/,
        ],
        [
          ["dependent", "web", "--resource", "v1/Pod", "--when", "primary.spec.htm"],
          1,
          /when-type.*Did you mean 'html'/,
        ],
      ];
      for (const [args, status, message] of cases) {
        const outcome = await runCommand(project.path, "add", ...args);
        assert.is(outcome.status, status, `${args.join(" ")}: ${outcome.stderr}`);
        assert.match(outcome.stderr, message);
      }
      assert.is(await readFile(spec, "utf8"), before);
      assert.not.ok((await readdir(project.path)).includes("audit.workflow.yaml"));
      await writeFile(spec, before.replace("dependents:", "dependants:"));
      const broken = await runCommand(project.path, "add", "dependent", "web", "--resource", "v1/Pod");
      assert.is(broken.status, 1);
      assert.match(broken.stderr, /unknown-field/);
    },
    LONG,
  );
});

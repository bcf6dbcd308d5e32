import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { formatDiagnostic } from "#generator/diagnostic.js";
import { generate } from "#generator/generate.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const head = (name: string) =>
  `apiVersion: gen-operator.dev/v1alpha1\nkind: Workflow\nmetadata: { name: ${name} }\nspec:\n  primary: v1/Service\n`;
const WEB = "    web: { resource: apps/v1/Deployment }\n";
const CONFIG = "    config: { resource: v1/ConfigMap }\n";
const REMOVED = "  removed:\n    web: { resource: apps/v1/Deployment, deletion: ordered }\n";
const spec = (...parts: string[]) => `${head("page")}  dependents:\n${parts.join("")}`;
const stub = "src/page/dependents/web.ts";

/** A project of which the last generation had the dependents `web` and `config`. */
async function createProject() {
  const folder = await createTemporaryFolder();
  const run = async (text: string, options: { readonly check?: boolean; readonly forget?: readonly string[] } = {}) => {
    await writeFile(join(folder.path, "workflow.yaml"), text);
    const { diagnostics, report } = await generate({ project: folder.path, ...options });
    const rules = diagnostics.map(({ rule }) => rule);
    // What the checks of these tests are not about.
    const errors = rules.filter((rule) => rule !== "missing-stub");
    return { rules, errors, messages: diagnostics, report };
  };
  assert.equal((await run(spec(WEB, CONFIG))).rules, []);
  return { path: folder.path, run, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

suite("removed dependent", (declareTest) => {
  const test = (title: string, body: () => unknown) => declareTest(title, body, { timeoutMs: 120_000 });

  test("fails every run and check until it is moved or listed in removed", async () => {
    await using project = await createProject();
    for (const options of [{}, { check: true }, {}]) {
      const { rules, report } = await project.run(spec(CONFIG), options);
      assert.equal([rules, report], [["unstated-removal"], undefined]);
    }
    // A run that fails for something else forgets nothing.
    const wrong = await project.run(spec(CONFIG.replace("}", ", dependsOn: [nothing] }")) + REMOVED);
    assert.equal(wrong.rules, ["unknown-dependent"]);
    assert.equal((await project.run(spec(CONFIG))).rules, ["unstated-removal"]);
    assert.equal((await project.run(spec(CONFIG) + REMOVED)).rules, []);
  });

  test("can be dropped from removed after a run with the entry", async () => {
    await using project = await createProject();
    assert.equal((await project.run(spec(CONFIG) + REMOVED, { check: true })).rules, []);
    assert.equal((await project.run(spec(CONFIG))).rules, ["unstated-removal"], "a check forgets nothing");
    assert.equal((await project.run(spec(CONFIG) + REMOVED)).rules, []);
    assert.equal((await project.run(spec(CONFIG))).rules, []);
  });

  test("causes no change if added again", async () => {
    await using project = await createProject();
    await project.run(spec(CONFIG));
    const { rules, report } = await project.run(spec(WEB, CONFIG), { check: true });
    assert.equal([rules, report?.stale], [[], []]);
  });

  test("must be listed in removed after a change of its kind, also if it is renamed", async () => {
    await using project = await createProject();
    const { messages } = await project.run(spec(WEB.replace("apps/v1/Deployment", "apps/v1/StatefulSet"), CONFIG));
    assert.match(
      messages[0]?.message ?? "",
      'dependent "web" was a Deployment of apps and is now a StatefulSet of apps',
    );
    assert.is(messages[0]?.path, "spec.dependents.web");
    const beside = spec(WEB.replace("apps/v1/Deployment", "apps/v1/StatefulSet"), CONFIG) + REMOVED;
    assert.equal((await project.run(beside)).rules, []);
    const moved = `${beside.replace("web:", "site:")}  moved: [{ from: web, to: site }]\n`;
    assert.equal((await project.run(moved)).rules, [], "the objects of the old kind go, and those of the new one stay");
  });

  test("need not be listed after a change of the version of its kind, which is the same object", async () => {
    await using project = await createProject();
    const scaler = (version: string) =>
      spec(WEB, `    scaler: { resource: autoscaling/${version}/HorizontalPodAutoscaler }\n`);
    assert.equal((await project.run(scaler("v1"), { forget: ["page/config"] })).rules, []);
    const { rules, report } = await project.run(scaler("v2"));
    assert.equal(rules, []);
    assert.ok(report?.updated.includes("src/generated/page/types.ts"), report?.updated.join());
    const { messages } = await project.run(spec(WEB));
    assert.match(messages[0]?.message ?? "", 'dependent "scaler" was removed from the workflow');
  });

  test("must be listed in removed after a change of namespace or selector that hides the old objects", async () => {
    await using project = await createProject();
    const web = (more: string) => spec(WEB.replace(" }", `, deletion: ordered${more} }`), CONFIG);
    const changes: [before: string, after: string, was: string, is: string, entry: string][] = [
      ["", ", namespace: a", "", ' in namespace "a"', ""],
      [", namespace: a", ", namespace: b", ' in namespace "a"', ' in namespace "b"', ", namespace: a"],
      ["", ", labelSelector: tier=x", "", ' with labelSelector "tier=x"', ""],
      [", labelSelector: x", ", labelSelector: y", ' with labelSelector "x"', ' with labelSelector "y"', ""],
      ["", ', fieldSelector: "metadata.name=x"', "", ' with fieldSelector "metadata.name=x"', ""],
    ];
    for (const [before, after, was, is, entry] of changes) {
      assert.equal((await project.run(web(before), { forget: ["page/web"] })).rules, [], before);
      const { rules, messages } = await project.run(web(after));
      const message = `dependent "web" was a Deployment of apps${was} and is now a Deployment of apps${is}`;
      assert.equal([rules, messages[0]?.message.split(";")[0]], [["unstated-removal"], message]);
      const [, removed = ""] = /^( *removed:\n.*$)/m.exec(formatDiagnostic(messages[0]!)) ?? [];
      assert.is(removed, `  removed:\n    web: { resource: apps/v1/Deployment${entry}, deletion: ordered }`);
      const moved = web(after).replace("web:", "site:") + "  moved: [{ from: web, to: site }]\n";
      assert.equal((await project.run(moved)).rules, ["moved-dependent"]);
      assert.equal((await project.run(`${web(after)}${removed}\n`)).rules, []);
      assert.equal((await project.run(web(after))).rules, []);
    }
    for (const [before, after] of [
      [", namespace: a", ""],
      [", labelSelector: x", ""],
    ] as const) {
      await project.run(web(before), { forget: ["page/web"] });
      assert.equal((await project.run(web(after))).rules, [], "all of them are seen");
    }
  });

  test("reports only unknown-kind for a misspelled kind", async () => {
    await using project = await createProject();
    const mistyped = (text: string) => text.replace("Deployment", "Deploymet");
    for (const text of [spec(mistyped(WEB), CONFIG), spec(CONFIG) + mistyped(REMOVED)])
      assert.equal((await project.run(text)).rules, ["unknown-kind"]);
  });

  test("prints entries for moved and removed that can be pasted", async () => {
    await using project = await createProject();
    const [gone] = (await project.run(spec(CONFIG))).messages;
    const [, moved = "", removed = ""] =
      /^( *moved:\n.*\n)[^]*?^( *removed:\n.*$)/m.exec(formatDiagnostic(gone!)) ?? [];
    const renamed = WEB.replace("web", "site");
    assert.equal((await project.run(spec(CONFIG, renamed) + moved.replace("NEW_NAME", "site"))).rules, []);
    assert.equal((await project.run(`${spec(CONFIG)}${removed.replace("web", "site")}\n`)).rules, []);
  });

  test("fails on a damaged record of the last generation, but not on merge conflict markers", async () => {
    await using project = await createProject();
    const file = join(project.path, "src/generated/.gen-operator.json");
    const text = await readFile(file, "utf8");
    const last = text.split("\n").length;
    const [entry = ""] = /^ +"page\/web".*\n/m.exec(text) ?? [];
    const line = text.slice(0, text.indexOf(entry)).split("\n").length;
    const controllerLine = text.slice(0, text.indexOf('"page": "v1/Service"')).split("\n").length;
    const fieldLine = text.slice(0, text.indexOf('"dependents"')).split("\n").length;
    const damages: [text: string, line: number][] = [
      ["", 1],
      ["[]\n", 1],
      [text.slice(0, text.indexOf(entry)), line - 1],
      [text.slice(0, -3), last - 2],
      [text.replace(entry, entry.replace("}", "")), line],
      [text.replace(entry, entry.replace(/\{.*\}/, "null")), line],
      [text.replace(entry, entry.replace("resource", "resorce")), line],
      [text.replace(entry, entry.replace("page/web", "page")), line],
      [text.replace(/("dependents": )\{[^]*\n {2}\}/, "$1[]"), fieldLine],
      [text.replace(/("dependents": )\{[^]*\n {2}\}/, "$1null"), fieldLine],
      [text.replace('"v1/Service"', "{}"), controllerLine],
      [text.replace(/("controllers": )\{[^}]*\}/, "$1[]"), controllerLine - 1],
    ];
    for (const [damaged, at] of damages)
      for (const options of [{}, { check: true }]) {
        await writeFile(file, damaged);
        const { messages, report } = await project.run(spec(CONFIG), options);
        assert.equal(
          messages.map((each) => formatDiagnostic(each).split("\n")[0]),
          [
            `src/generated/.gen-operator.json:${at}:1: error damaged-record: the record of the dependents of the last generation is damaged`,
          ],
        );
        assert.is(report, undefined);
        assert.is(await readFile(file, "utf8"), damaged);
      }
    await writeFile(file, text.replace(entry, `<<<<<<< ours\n${entry}=======\n>>>>>>> theirs\n`));
    assert.equal((await project.run(spec(CONFIG))).rules, ["unstated-removal"]);
  });

  test("prints single entries if the spec already has moved or removed", async () => {
    await using project = await createProject();
    const labels = "    labels: { resource: v1/ConfigMap }\n";
    const site = WEB.replace("web", "site");
    await project.run(spec(WEB, labels, CONFIG));
    const stated = `${spec(CONFIG, site)}  removed:\n    labels: { resource: v1/ConfigMap, deletion: ordered }\n`;
    const [gone] = (await project.run(stated)).messages;
    const hint = formatDiagnostic(gone!);
    assert.match(hint, "add to spec:\n  moved:\n    - { from: web, to: site }\n");
    const [, entry = ""] = /add to spec\.removed; .*:\n(    web: .*)$/m.exec(hint) ?? [];
    assert.equal((await project.run(`${stated}${entry}\n`)).rules, []);
    const moved = await project.run(`${spec(CONFIG)}  moved:\n    - { from: labels, to: config }\n`);
    const other = moved.messages.find(({ rule }) => rule === "unstated-removal");
    assert.match(formatDiagnostic(other!), "add to spec.moved:\n    - { from: site, to: NEW_NAME }\n");
  });

  test("is detected by its stub if src/generated is missing", async () => {
    await using project = await createProject();
    await rm(join(project.path, "src/generated"), { recursive: true });
    await writeFile(
      join(project.path, "src/page/dependents/labels.ts"),
      'import type { WebDesired } from "../../generated/page/types.js";\nexport type Labels = WebDesired;\n',
    );
    const { rules, messages } = await project.run(spec(CONFIG));
    assert.equal(rules, ["unstated-removal"]);
    assert.match(messages[0]?.message ?? "", `${stub} belongs to a dependent that is not in the workflow`);
    assert.equal((await project.run(spec(CONFIG) + REMOVED)).rules, []);
    assert.equal((await project.run(spec(CONFIG))).rules, []);
  });

  test("is not reported without src/generated and the stub", async () => {
    await using project = await createProject();
    await rm(join(project.path, "src"), { recursive: true });
    assert.equal((await project.run(spec(CONFIG))).rules, []);
  });

  test("cannot be moved to a dependent that existed beside it", async () => {
    await using project = await createProject();
    const site = WEB.replace("web", "site");
    await project.run(spec(WEB, site, CONFIG));
    const { rules, messages } = await project.run(`${spec(site, CONFIG)}  moved: [{ from: web, to: site }]\n`);
    assert.equal(rules, ["moved-dependent"]);
    assert.match(
      messages[0]?.message ?? "",
      'dependent "site" already existed beside "web", so it cannot take over the objects of "web"',
    );
  });

  test("is reported for a removed controller until all are removed or forgotten", async () => {
    await using project = await createProject();
    const other = `${head("site").replace("v1/Service", "v1/Secret")}  dependents:\n${CONFIG}`;
    const { messages } = await project.run(other);
    assert.equal(
      messages.map(({ rule, message }) => `${rule}: ${message}`),
      [
        'unstated-removal: controller "page" was removed, but objects of its dependents may still exist in clusters: config, web',
      ],
    );
    assert.equal((await project.run(other, { forget: ["page/web"] })).rules, ["unstated-removal"]);
    assert.equal((await project.run(other, { forget: ["page"] })).rules, []);
    assert.equal((await project.run(other)).rules, []);
  });

  test("requires formerNames for a renamed controller", async () => {
    await using project = await createProject();
    const renamed = (more = "") => `${head("site")}${more}  dependents:\n${WEB}${CONFIG}`;
    for (const options of [{}, { check: true }, {}]) {
      const { rules, report } = await project.run(renamed(), options);
      assert.equal([rules, report], [["unhandled-rename"], undefined]);
    }
    const [gone] = (await project.run(renamed())).messages;
    assert.match(gone?.message ?? "", 'it will not find the objects that are labeled with "page"');
    const [, lines = ""] = /^( *controller:\n.*\n)/m.exec(formatDiagnostic(gone!)) ?? [];
    assert.is(lines, "  controller:\n    formerNames: [page]\n");
    const { rules, report } = await project.run(renamed(lines));
    assert.equal(rules, []);
    assert.ok(report?.created.includes("src/generated/site/controller.ts"));
    const wiring = await readFile(join(project.path, "src/generated/site/controller.ts"), "utf8");
    assert.match(wiring, 'formerNames: ["page"],');
    assert.equal((await project.run(renamed())).rules, [], "the record has the new name");
  });

  test("must be moved or removed for a renamed controller, too", async () => {
    await using project = await createProject();
    const renamed = (...parts: string[]) =>
      `${head("site")}  controller: { formerNames: [page] }\n  dependents:\n${parts.join("")}`;
    const { rules, messages } = await project.run(renamed(CONFIG));
    assert.equal(rules, ["unstated-removal"]);
    assert.match(messages[0]?.message ?? "", 'dependent "web" was removed from the workflow');
    const moved = `${renamed(CONFIG, WEB.replace("web", "server"))}  moved: [{ from: web, to: server }]\n`;
    assert.equal((await project.run(moved, { check: true })).errors, []);
    assert.equal((await project.run(renamed(CONFIG) + REMOVED)).rules, []);
    assert.equal((await project.run(renamed(CONFIG))).rules, []);
  });

  test("requires formerNames also for a renamed controller without dependents", async () => {
    await using project = await createProject();
    const bare = (name: string, primary: string, more = "") =>
      `---\n${head(name).replace("v1/Service", primary)}${more}`;
    assert.equal((await project.run(spec(WEB, CONFIG) + bare("audit", "v1/Secret"))).rules, []);
    const renamed = spec(WEB, CONFIG) + bare("checks", "v1/Secret");
    assert.equal((await project.run(renamed)).rules, ["unhandled-rename"]);
    assert.equal((await project.run(spec(WEB, CONFIG) + bare("checks", "v1/ConfigMap"), { check: true })).errors, []);
    assert.equal((await project.run(spec(WEB, CONFIG), { check: true })).errors, [], "it can go");
    const former = bare("checks", "v1/Secret", "  controller: { formerNames: [audit] }\n");
    const { errors, report } = await project.run(spec(WEB, CONFIG) + former, { check: true });
    assert.equal(errors, []);
    assert.ok(report?.stale.includes("src/generated/.gen-operator.json"));
    assert.equal((await project.run(renamed, { forget: ["audit"] })).rules, []);
    assert.equal((await project.run(renamed)).rules, []);
  });

  test("detects a renamed controller by its dependents if the record has no controllers", async () => {
    await using project = await createProject();
    const file = join(project.path, "src/generated/.gen-operator.json");
    const text = await readFile(file, "utf8");
    await writeFile(file, text.replace(/ *"controllers": \{[^}]*\},\n/, ""));
    assert.equal((await project.run(`${head("site")}  dependents:\n${CONFIG}`)).rules, ["unhandled-rename"]);
    assert.equal((await project.run(`${head("site")}  dependents: {}\n`)).rules, ["unstated-removal"]);
  });

  test("rejects an unknown name in --forget and lists the known ones", async () => {
    await using project = await createProject();
    for (const text of [spec(WEB, CONFIG), spec(CONFIG)])
      for (const options of [{}, { check: true }]) {
        const { messages, report } = await project.run(text, { forget: ["page/wbe", "page/web", "site"], ...options });
        const known = "known names: page, page/config, page/web";
        assert.equal(messages.map(formatDiagnostic), [
          `error unknown-forget: controller or dependent "page/wbe" of --forget not found in the last generation\n  did you mean "page/web"? ${known}`,
          `error unknown-forget: controller or dependent "site" of --forget not found in the last generation\n  ${known}`,
        ]);
        assert.is(report, undefined);
      }
  });

  test("can be forgotten alone", async () => {
    await using project = await createProject();
    assert.equal((await project.run(spec(CONFIG), { forget: ["page/web"] })).rules, []);
    assert.equal((await project.run(spec(CONFIG))).rules, []);
    assert.match(await readFile(join(project.path, stub), "utf8"), "WebDesired");
  });
});

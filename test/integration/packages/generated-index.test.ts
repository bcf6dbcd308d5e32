// What the code of a project, and its tests, can import from src/generated/index.ts.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "../../support/command-line.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const schema = { openAPIV3Schema: { type: "object", properties: { replicas: { type: "integer" } } } };

const definitionOf = (group: string, kind: string, versions: readonly string[]) => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `${kind.toLowerCase()}s.${group}` },
  spec: {
    group,
    scope: "Namespaced",
    names: { kind, plural: `${kind.toLowerCase()}s`, singular: kind.toLowerCase(), listKind: `${kind}List` },
    versions: versions.map((name, index) => ({ name, served: true, storage: index === 0, schema })),
  },
});
const untyped = (group: string, kind: string) => ({
  ...{ apiVersion: `${group}/v1`, kind, plural: `${kind.toLowerCase()}s`, scope: "Namespaced" },
});

/** Generates the code of a project, and returns what its index exports, but for the types of inputs. */
async function exportsOf(crds: readonly object[], spec: object): Promise<string[]> {
  await using folder = await createTemporaryFolder();
  await mkdir(join(folder.path, "crds"));
  const write = (path: string, value: object) => writeFile(join(folder.path, path), JSON.stringify(value));
  for (const [index, crd] of crds.entries()) await write(`crds/${index}.json`, crd);
  const workflow = { apiVersion: "gen-operator.dev/v1alpha1", kind: "Workflow", metadata: { name: "shop" }, spec };
  await write("workflow.yaml", workflow);
  const { status, stderr } = await runCommand(folder.path, "generate");
  assert.is(status, 0, stderr);
  const index = await readFile(join(folder.path, "src/generated/index.ts"), "utf8");
  const lists = [...index.matchAll(/^export \{ (.*) \}/gm)].flatMap(([, names = ""]) => names.split(", "));
  const constants = [...index.matchAll(/^export const (\w+)/gm)].map(([, name = ""]) => name);
  return [...lists.map((each) => each.split(" as ").at(-1) ?? ""), ...constants].sort();
}

suite("generated index", (test) => {
  test("exports each kind of the spec once", async () => {
    const names = await exportsOf([definitionOf("example.com", "Shop", ["v1", "v1beta1"])], {
      primary: "example.com/v1/Shop",
      dependents: {
        settings: { resource: "v1/ConfigMap", ref: { name: '"settings"' } },
        copy: { resource: "v1/ConfigMap" },
        web: {
          resource: "apps/v1/Deployment",
          activationCondition: { crdPresent: { of: untyped("route.example.com", "Route") } },
        },
        account: {
          external: {
            inbound: {},
            capabilities: ["create"],
            state: { resource: "coordination.k8s.io/v1/Lease", path: "spec.holderIdentity" },
          },
        },
        certificate: { resource: untyped("cert.example.com", "Certificate") },
      },
      removed: { cache: { resource: "apps/v1/StatefulSet", deletion: "orphan" } },
      eventSources: { pods: { resource: "v1/Pod", mapping: { label: { name: "shop" } } } },
    });
    const builtin = ["ConfigMap", "Deployment", "Lease", "Pod", "StatefulSet"];
    const own = ["Certificate", "Route", "Shop", "ShopV1beta1", "controllers", "shopController"];
    assert.equal(names, [...builtin, ...own].sort());
  });

  test("prefixes a kind without a schema with its group if its name is taken", async () => {
    const names = await exportsOf([definitionOf("example.com", "Shop", ["v1"])], {
      primary: "example.com/v1/Shop",
      dependents: {
        service: { resource: "v1/Service" },
        knative: { resource: untyped("serving.knative.dev", "Service") },
        input: { resource: untyped("other.example.com", "ShopInput") },
      },
    });
    assert.equal(
      names,
      [
        "OtherExampleComShopInput",
        "Service",
        "ServingKnativeDevService",
        "Shop",
        "controllers",
        "shopController",
      ].sort(),
    );
  });
});

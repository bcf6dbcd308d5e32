// Members of an object that other field managers or the API server set, and that keep the API server from accepting what is desired.
import type { ResourceDefinition, Schema } from "#runtime/base/kubernetes-object.js";
import { defineResource } from "#runtime/api/define-resource.js";
import type { ManagedEntry } from "#runtime/apply/field-set.js";
import { startTestApiServer } from "../../../support/api/api-server.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { failureOf } from "../../../support/runtime/failures.js";
import { assert, shared, suite } from "../../../support/suite.js";
import { startWriting as startWritingTo, type ForeignWrite } from "./one-object.js";

const url: Schema = { type: "object", properties: { url: { type: "string" } } };
const schema: Schema = {
  type: "object",
  properties: {
    spec: {
      type: "object",
      properties: {
        git: url,
        http: url,
        size: { type: "integer", default: 1 },
        replicas: { type: "integer" },
        left: { type: "string" },
        right: { type: "string" },
        both: { type: "string" },
        one: { type: "object", properties: { x: { type: "string" }, y: { type: "string" } } },
        targets: {
          type: "array",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["name"],
          items: { type: "object", required: ["name"], properties: { name: { type: "string" }, file: url, host: url } },
        },
      },
    },
  },
};

// The schema as the API server has it, with its rules.
function served(): object {
  const { spec } = structuredClone(schema).properties as { spec: { properties: Record<string, object> } };
  const rule = (text: string) => ({ rule: text, message: text });
  const { one, targets } = spec.properties as { one: object; targets: { items: object } };
  Object.assign(one, { oneOf: [{ required: ["x"] }, { required: ["y"] }] });
  Object.assign(targets, { maxItems: 10 });
  Object.assign(targets.items, { "x-kubernetes-validations": [rule("!has(self.file) || !has(self.host)")] });
  const validations = [
    rule("has(self.git) != has(self.http)"),
    rule("!has(self.both) || (!has(self.left) && !has(self.right))"),
    rule("!has(self.replicas) || !has(self.size) || self.replicas < 10 || self.size < 10"),
  ];
  return { type: "object", properties: { spec: { ...spec, "x-kubernetes-validations": validations } } };
}

const Source = defineResource({
  ...{ group: "example.com", version: "v1", kind: "Source", plural: "sources", scope: "Namespaced" },
  ...{ isCustom: true, hasStatusSubresource: false, schema },
});
const names = { plural: "sources", singular: "source", kind: "Source", listKind: "SourceList" };
const versions = [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: served() } }];
const crd = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "sources.example.com" },
  spec: { group: "example.com", scope: "Namespaced", names, versions },
};
const Deployment = builtinDefinition("apps/v1", "Deployment");
const StatefulSet = builtinDefinition("apps/v1", "StatefulSet");
const Service = builtinDefinition("v1", "Service");

const server = shared(() => startTestApiServer({ crds: [crd] }));
const startWriting = async (definition: ResourceDefinition) => startWritingTo(await server(), definition);

const labels = { app: "x" };
const selector = { matchLabels: labels };
const podOf = (container: object, volumes?: object[]) => ({
  metadata: { labels },
  spec: { containers: [{ name: "main", image: "image", ...container }], ...(volumes && { volumes }) },
});
const deploymentOf = (template: object, spec: object = {}) => ({ spec: { selector, template, ...spec } });
const setOf = (spec: object = {}) => ({ spec: { selector, serviceName: "x", template: podOf({}), ...spec } });
const field = { fieldRef: { fieldPath: "metadata.name" } };
const exec = { exec: { command: ["true"] } };
const httpGet = { httpGet: { path: "/", port: 80 } };

const PORTS = [
  { name: "http", port: 8080, protocol: "TCP" },
  { name: "admin", port: 9090, protocol: "TCP" },
];

interface Switch {
  readonly title: string;
  readonly definition: ResourceDefinition;
  readonly first: object;
  readonly others?: ForeignWrite;
  readonly desired: object;
  /** The members that go, as the log names them. */
  readonly removed: readonly string[];
  readonly owner?: string;
  readonly tries?: number;
}

const switches: readonly Switch[] = [
  {
    title: "the default strategy of a Deployment",
    definition: Deployment,
    first: deploymentOf(podOf({})),
    desired: deploymentOf(podOf({}), { strategy: { type: "Recreate" } }),
    removed: ["spec.strategy.rollingUpdate"],
    owner: "set by the API server",
  },
  {
    title: "the strategy of a Deployment that another field manager set",
    definition: Deployment,
    first: deploymentOf(podOf({})),
    others: { mergePatch: { spec: { strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 2 } } } } },
    desired: deploymentOf(podOf({}), { strategy: { type: "Recreate" } }),
    removed: ["spec.strategy.rollingUpdate"],
  },
  {
    title: "the updateStrategy of a StatefulSet",
    definition: StatefulSet,
    first: setOf(),
    desired: setOf({ updateStrategy: { type: "OnDelete" } }),
    removed: ["spec.updateStrategy.rollingUpdate"],
    owner: "set by the API server",
  },
  {
    title: "the source of a volume",
    definition: Deployment,
    first: deploymentOf(
      podOf({}, [
        { name: "a", emptyDir: {} },
        { name: "v", configMap: { name: "x" } },
      ]),
    ),
    others: { apply: deploymentOf(podOf({}, [{ name: "v", configMap: { name: "x", optional: true } }])) },
    desired: deploymentOf(
      podOf({}, [
        { name: "a", emptyDir: {} },
        { name: "v", secret: { secretName: "x" } },
      ]),
    ),
    removed: ['spec.template.spec.volumes[name="v"].configMap'],
  },
  {
    title: "valueFrom of two variables",
    definition: Deployment,
    first: deploymentOf(
      podOf({
        env: [
          { name: "A", value: "1" },
          { name: "B", value: "2" },
        ],
      }),
    ),
    others: {
      apply: deploymentOf(
        podOf({
          env: [
            { name: "A", value: "1" },
            { name: "B", value: "2" },
          ],
        }),
      ),
    },
    desired: deploymentOf(
      podOf({
        env: [
          { name: "A", valueFrom: field },
          { name: "B", valueFrom: field },
        ],
      }),
    ),
    removed: [
      'spec.template.spec.containers[name="main"].env[name="A"].value',
      'spec.template.spec.containers[name="main"].env[name="B"].value',
    ],
    tries: 2,
  },
  {
    title: "the handler of a probe",
    definition: Deployment,
    first: deploymentOf(podOf({ livenessProbe: httpGet })),
    others: { apply: deploymentOf(podOf({ livenessProbe: httpGet })) },
    desired: deploymentOf(podOf({ livenessProbe: exec })),
    removed: ['spec.template.spec.containers[name="main"].livenessProbe.httpGet'],
  },
  {
    title: "a field excluded by a validation rule",
    definition: Source,
    first: { spec: { git: { url: "a" } } },
    others: { mergePatch: { spec: { git: null, http: { url: "b" } } } },
    desired: { spec: { git: { url: "a" } } },
    removed: ["spec.http"],
  },
  {
    title: "two fields excluded by a validation rule",
    definition: Source,
    first: { spec: { git: { url: "a" } } },
    others: { mergePatch: { spec: { left: "a", right: "b" } } },
    desired: { spec: { git: { url: "a" }, both: "c" } },
    removed: ["spec.left", "spec.right"],
    tries: 4,
  },
  {
    title: "a field excluded by oneOf",
    definition: Source,
    first: { spec: { git: { url: "a" }, one: { x: "a" } } },
    others: { mergePatch: { spec: { one: { x: null, y: "b" } } } },
    desired: { spec: { git: { url: "a" }, one: { x: "a" } } },
    removed: ["spec.one.y"],
  },
  {
    title: "a field of a list item excluded by a validation rule",
    definition: Source,
    first: { spec: { git: { url: "a" }, targets: [{ name: "a" }, { name: "b", file: { url: "a" } }] } },
    others: { mergePatch: { spec: { targets: [{ name: "a" }, { name: "b", host: { url: "b" } }] } } },
    desired: { spec: { git: { url: "a" }, targets: [{ name: "a" }, { name: "b", file: { url: "a" } }] } },
    removed: ['spec.targets[name="b"].host'],
  },
  {
    title: "a list item with a conflicting unique value",
    definition: Service,
    first: { spec: { ports: [{ name: "http", port: 80, protocol: "TCP" }] } },
    others: { jsonPatch: [{ op: "replace", path: "/spec/ports", value: PORTS }] },
    desired: { spec: { ports: [{ name: "http", port: 80, protocol: "TCP" }] } },
    removed: ['spec.ports[port=8080,protocol="TCP"]'],
  },
];

function fieldsOf(entries: readonly ManagedEntry[]): string {
  const entry = entries.find(({ manager, operation }) => manager === "us" && operation === "Apply");
  return JSON.stringify(entry?.fieldsV1);
}

suite("conflicting union members", (test) => {
  for (const {
    title,
    definition,
    first,
    others,
    desired,
    removed,
    owner = 'owned by "kubectl-edit"',
    tries,
  } of switches)
    test(`are removed by the write that sets the desired member: ${title}`, async () => {
      await using writing = await startWriting(definition);
      const { apply, logs, requests } = writing;
      await apply(first);
      await writing.others(others);
      const written = await apply(desired);
      assert.is(written.kind, "updated");
      const isTry = (request: string) => request.startsWith("dry ");
      assert.is(requests.filter(isTry).length, tries ?? 1, requests.join());
      assert.equal(
        // Without a field of its own left, the controller looks for those of a former name first.
        requests.slice(requests.indexOf("PATCH 422")).filter((each) => !isTry(each)),
        ["PATCH 422", "GET 200", "PATCH 200", "PATCH 200"],
      );
      const warnings = logs.filter((line) => line.startsWith("warn"));
      assert.is(warnings.length, 1, logs.join("\n"));
      const members = removed.map((path) => `${path} (${owner})`).join(", ");
      assert.match(warnings[0]!, `removed ${members} from ${definition.kind} "${writing.key}"`);
      // What is desired is there, what is not ours stays, and only what is desired is owned.
      assert.is((await apply(desired)).kind, "unchanged");
      const owned = fieldsOf(await writing.managers());
      for (const path of removed) {
        const name = path
          .replace(/\[[^\]]*\]$/, "")
          .split(".")
          .at(-1)!;
        if (path.endsWith("]")) continue;
        assert.not.ok(owned.includes(`"f:${name}"`), owned);
      }
    });

  for (const title of ["another manager set the member", "no field is ours any more"])
    test(`are removed if desired() reads the live object: ${title}`, async () => {
      await using writing = await startWriting(Source);
      await writing.apply({ spec: { git: { url: "a" } } });
      const left = title === "no field is ours any more" ? null : { url: "a" };
      const change = left === null ? { git: null, http: { url: "b" } } : { left: "x" };
      await writing.others({ mergePatch: { spec: change } });
      const desired = { spec: { git: { url: "a" }, both: "c" } };
      assert.is((await writing.apply(desired, { readsLive: true })).kind, "updated");
      assert.equal(await writing.specOf(), { git: { url: "a" }, both: "c", size: 1 });
    });

  test("are removed permanently, so that the new member can be removed later", async () => {
    await using writing = await startWriting(Deployment);
    await writing.apply(deploymentOf(podOf({ livenessProbe: httpGet })));
    await writing.others({ apply: deploymentOf(podOf({ livenessProbe: httpGet })) });
    await writing.apply(deploymentOf(podOf({ livenessProbe: exec })));
    await writing.apply(deploymentOf(podOf({})));
    const { template } = (await writing.specOf()) as unknown as { template: { spec: { containers: object[] } } };
    assert.not.ok("livenessProbe" in template.spec.containers[0]!);
  });

  test("are kept if the desired object is invalid without them, and the error names their managers", async () => {
    await using writing = await startWriting(Source);
    await writing.apply({ spec: { git: { url: "a" } } });
    await writing.others({ mergePatch: { spec: { left: "x", size: 3 } } });
    const before = await writing.managers();
    const failure = await failureOf(() => writing.apply({ spec: { git: { url: "a" }, http: { url: "b" } } }));
    assert.match(failure, "has(self.git) != has(self.http)");
    assert.match(failure, 'spec.left ("kubectl-edit")');
    assert.equal(await writing.managers(), before);
    assert.equal(
      writing.requests.filter((each) => !each.startsWith("dry ")),
      ["PATCH 422", "GET 200"],
    );
    assert.ok(writing.requests.length <= 10, writing.requests.join());
  });

  test("are not searched for after an immutable field error", async () => {
    await using writing = await startWriting(Deployment);
    await writing.apply(deploymentOf(podOf({})));
    const changed = { ...podOf({}), metadata: { labels: { app: "y" } } };
    await failureOf(() => writing.apply({ spec: { selector: { matchLabels: { app: "y" } }, template: changed } }));
    assert.equal(writing.requests, ["PATCH 422"]);
  });

  test("are kept if they are replicas", async () => {
    await using writing = await startWriting(Source);
    await writing.apply({ spec: { git: { url: "a" } } });
    await writing.others({ mergePatch: { spec: { replicas: 20 } } });
    const failure = await failureOf(() => writing.apply({ spec: { git: { url: "a" }, size: 20 } }));
    assert.match(failure, "self.replicas");
    assert.is(((await writing.specOf()) as unknown as { replicas: number }).replicas, 20);
  });

  test("are removed although the controller also owned them before", async () => {
    await using writing = await startWriting(Source);
    await writing.others({ apply: { spec: { git: { url: "a" }, left: "x" } } }, "us");
    await writing.others({ apply: { spec: { left: "x" } } });
    assert.is((await writing.apply({ spec: { git: { url: "a" }, both: "c" } })).kind, "updated");
    const { left, both } = (await writing.specOf()) as unknown as { left?: string; both?: string };
    assert.equal([left, both], [undefined, "c"]);
  });
});

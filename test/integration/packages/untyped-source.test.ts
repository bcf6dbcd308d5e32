// A project that watches a kind without having its CRD: generated, compiled, and run.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createLogger, createOperator, untypedResource, type ControllerDefinition } from "@gen-operator/runtime";
import { waitFor } from "#apiserver/wait-for.js";
import { startTestApiServer } from "../../support/api/api-server.js";
import { runCommand } from "../../support/command-line.js";
import { fastCompiler, writeProject } from "../../support/projects/compile.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const definitionOf = (kind: string, plural: string) => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `${plural}.example.com` },
  spec: {
    group: "example.com",
    scope: "Namespaced",
    names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
    versions: [{ name: "v1", served: true, storage: true, subresources: { status: {} }, schema: { openAPIV3Schema } }],
  },
});
const openAPIV3Schema = {
  type: "object",
  properties: {
    spec: { type: "object", properties: { tier: { type: "string" }, note: { type: "string" } } },
    status: { type: "object", properties: { tiers: { type: "array", items: { type: "string" } } } },
  },
};

const ISSUER = { apiVersion: "example.com/v1", kind: "Issuer", plural: "issuers", scope: "Namespaced" } as const;
const SPEC = {
  apiVersion: "gen-operator.dev/v1alpha1",
  kind: "Workflow",
  metadata: { name: "shop" },
  spec: {
    primary: "example.com/v1/Shop",
    eventSources: {
      issuers: { resource: ISSUER, mapping: { label: { name: "shop" } }, cache: { paths: ["spec.tier"] } },
    },
  },
};
const RECONCILER = `
import type { ShopReconciler } from "../generated/shop/types.js";
export const reconciler: ShopReconciler = {
  reconcile: ({ primary, secondary }) => {
    const tiers = secondary.issuers.map(({ spec }) => JSON.stringify(spec));
    return { status: { ...primary.status, tiers } };
  },
};
`;

suite("event source of a kind without a CRD", (test) => {
  test(
    "passes its objects to the reconciler",
    async () => {
      await using folder = await createTemporaryFolder();
      const write = (path: string, value: object) => writeFile(join(folder.path, path), JSON.stringify(value));
      await mkdir(join(folder.path, "crds"));
      await write("crds/shops.yaml", definitionOf("Shop", "shops"));
      await write("workflow.yaml", SPEC);
      const { status, stderr } = await runCommand(folder.path, "generate");
      assert.is(status, 0, stderr);
      const options = { noEmit: false, rootDir: "src" };
      await writeProject(folder.path, [{ path: "src/shop/reconciler.ts", content: RECONCILER }], options);
      assert.is(fastCompiler.compile(folder.path), "");
      const built = pathToFileURL(join(folder.path, "dist/generated/index.js")).href;
      const { controllers, Issuer } = (await import(built)) as {
        readonly controllers: readonly ControllerDefinition[];
        readonly Issuer: ReturnType<typeof untypedResource>;
      };

      const crds = [definitionOf("Shop", "shops"), definitionOf("Issuer", "issuers")];
      await using server = await startTestApiServer({ crds });
      const { kubeconfig } = server;
      await using operator = await createOperator({ controllers, kubeconfig, logger: createLogger("error") }).start();
      const { client } = operator;
      const Shop = untypedResource({
        apiVersion: "example.com/v1",
        kind: "Shop",
        plural: "shops",
        scope: "Namespaced",
      });
      const metadata = { name: "one", namespace: "default" };
      const hasTiers = (wanted: readonly string[]) => async () =>
        JSON.stringify((await client.get(Shop, metadata))?.["status"]) === JSON.stringify({ tiers: wanted });
      await client.create(Shop, Shop.create({ metadata }));
      await waitFor("there is no issuer", hasTiers([]));
      const issuer = { metadata: { ...metadata, labels: { shop: "one" } }, spec: { tier: "gold", note: "not kept" } };
      await client.create(Issuer, Issuer.create(issuer));
      await waitFor("the issuer is known", hasTiers(['{"tier":"gold"}']));
      await client.delete(Issuer, metadata);
      await waitFor("the issuer is gone", hasTiers([]));
    },
    { timeoutMs: 90_000 },
  );
});

import { apiRequestOrThrow, type Connection } from "../api/api-request.js";
import { waitFor } from "#apiserver/wait-for.js";
import { assert, type DeclareTest } from "../suite.js";
import {
  type Condition,
  PATIENCE,
  TEST_OPTIONS,
  createConfigMap,
  createNamespace,
  namespaceIsGone,
  release,
} from "./cluster-steps.js";

/** Declares invariants of the deletion of namespaces. */
export function declareNamespaceLaws(test: DeclareTest["thorough"], connect: () => Promise<Connection>): void {
  test(
    "deletes all objects of a deleted namespace",
    async () => {
      const cluster = await connect();
      const namespace = await createNamespace(cluster);
      await createConfigMap(cluster, namespace, "a");
      await apiRequestOrThrow(cluster, `POST /api/v1/namespaces/${namespace}/secrets`, {
        body: { metadata: { name: "s" } },
      });
      await apiRequestOrThrow(cluster, `DELETE /api/v1/namespaces/${namespace}`);
      await namespaceIsGone(cluster, namespace);
      const { items } = await apiRequestOrThrow(cluster, `GET /api/v1/namespaces/${namespace}/secrets`);
      assert.equal(items, []);
    },
    TEST_OPTIONS,
  );

  test(
    "keeps a terminating namespace while finalizers remain, and reports it in its conditions",
    async () => {
      const cluster = await connect();
      const namespace = await createNamespace(cluster);
      await createConfigMap(cluster, namespace, "held", { finalizers: ["example.com/hold"] });
      await apiRequestOrThrow(cluster, `DELETE /api/v1/namespaces/${namespace}`);
      const conditions = await waitFor(
        "the conditions are written",
        async () =>
          (await apiRequestOrThrow(cluster, `GET /api/v1/namespaces/${namespace}`)).status?.["conditions"] as
            Condition[] | undefined,
        PATIENCE,
      );
      assert.equal(
        conditions.map(({ type, status, reason }) => [type, status, reason].join(" ")),
        [
          "NamespaceDeletionDiscoveryFailure False ResourcesDiscovered",
          "NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions",
          "NamespaceDeletionContentFailure False ContentDeleted",
          "NamespaceContentRemaining True SomeResourcesRemain",
          "NamespaceFinalizersRemaining True SomeFinalizersRemain",
        ],
      );
      assert.is(conditions[3]?.message, "Some resources are remaining: configmaps. has 1 resource instances");
      assert.is(
        conditions[4]?.message,
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
      );
      await release(cluster, namespace, "held");
      await namespaceIsGone(cluster, namespace);
    },
    TEST_OPTIONS,
  );
}

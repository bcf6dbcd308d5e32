import { waitFor } from "#apiserver/wait-for.js";
import { apiRequestOrThrow, type ApiObject, type Connection } from "../api/api-request.js";
import { assert, type DeclareTest } from "../suite.js";
import { PATIENCE, TEST_OPTIONS } from "./cluster-steps.js";

const ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

type Role = ApiObject & { rules: { verbs: string[]; resources: string[] }[] | null };

let roles = 0;

/** Declares what becomes of ClusterRoles that are made of others. */
export function declareClusterRoleLaws(test: DeclareTest, connect: () => Promise<Connection>): void {
  test(
    "aggregates the rules of selected ClusterRoles without duplicates, and removes those of deleted roles",
    async () => {
      const cluster = await connect();
      const prefix = `law-${++roles}`;
      const ruleFor = (resource: string) => ({ apiGroups: [""], verbs: ["get"], resources: [resource] });
      const create = (name: string, body: object) =>
        apiRequestOrThrow(cluster, `POST ${ROLES}`, { body: { metadata: { name: `${prefix}-${name}` }, ...body } });
      const part = (name: string, ...resources: string[]) =>
        create(name, {
          metadata: { name: `${prefix}-${name}`, labels: { part: prefix } },
          rules: resources.map(ruleFor),
        });
      const clusterRoleSelectors = [{ matchLabels: { part: prefix } }];
      const sum = { aggregationRule: { clusterRoleSelectors }, rules: [ruleFor("secrets")] };
      await create("sum", sum);
      await part("b", "services", "pods");
      await part("a", "pods");
      const until = (want: string[] | undefined) =>
        waitFor(
          `the resources ${want?.join(", ") ?? "none"}`,
          async () => {
            const role = await apiRequestOrThrow<Role>(cluster, `GET ${ROLES}/${prefix}-sum`);
            const given = role.rules?.flatMap(({ resources }) => resources);
            return JSON.stringify(given) === JSON.stringify(want) ? role : undefined;
          },
          PATIENCE,
        );
      const { metadata } = await until(["pods", "services"]);
      const manager = metadata.managedFields?.find(({ operation }) => operation === "Apply")?.manager;
      assert.is(manager, "clusterrole-aggregation-controller");
      await apiRequestOrThrow(cluster, `DELETE ${ROLES}/${prefix}-b`);
      await until(["pods"]);
      await apiRequestOrThrow(cluster, `DELETE ${ROLES}/${prefix}-a`);
      await until(undefined);
    },
    TEST_OPTIONS,
  );

  test(
    "aggregates rules into the ClusterRole view",
    async () => {
      const cluster = await connect();
      const role = await waitFor(
        "the rules of the role view",
        async () => {
          const view = await apiRequestOrThrow<Role>(cluster, `GET ${ROLES}/view`);
          return (view.rules ?? []).length > 0 ? view : undefined;
        },
        PATIENCE,
      );
      assert.ok(role.rules?.some(({ resources, verbs }) => resources.includes("pods") && verbs.includes("list")));
    },
    TEST_OPTIONS,
  );
}

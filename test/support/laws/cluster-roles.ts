import { waitFor } from "#apiserver/wait-for.js";
import { apiRequestOrThrow, type ApiObject, type Connection } from "../api/api-request.js";
import { assert, type DeclareTest } from "../suite.js";
import { PATIENCE, TEST_OPTIONS } from "./cluster-steps.js";

const ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

type Role = ApiObject & { rules: { verbs: string[]; resources: string[] }[] | null };

let roles = 0;

/** Declares invariants of aggregated ClusterRoles. */
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
    "aggregates the rules of system:aggregate-to-view and of other labeled roles into the ClusterRole view",
    async () => {
      const cluster = await connect();
      const rulesOf = async (name: string) => {
        const { rules } = await apiRequestOrThrow<Role>(cluster, `GET ${ROLES}/${name}`);
        return (rules ?? []).map((rule) => JSON.stringify(rule));
      };
      const own = await rulesOf("system:aggregate-to-view");
      assert.ok(own.some((rule) => rule.includes('"pods"') && rule.includes('"list"')));
      const until = (what: string, isWanted: (rules: string[]) => boolean) =>
        waitFor(what, async () => isWanted(await rulesOf("view")), PATIENCE);
      const hasOwn = (rules: string[]) => own.every((rule) => rules.includes(rule));
      await until("the role view has the rules of Kubernetes", hasOwn);
      const name = `law-${++roles}-to-view`;
      const labels = { "rbac.authorization.k8s.io/aggregate-to-view": "true" };
      const rule = { apiGroups: [`${name}.example.com`], resources: ["odds"], verbs: ["list"] };
      await apiRequestOrThrow(cluster, `POST ${ROLES}`, { body: { metadata: { name, labels }, rules: [rule] } });
      const hasAdded = (rules: string[]) => rules.some((each) => each.includes(`${name}.example.com`));
      await until("the role view has the added rule, too", (rules) => hasOwn(rules) && hasAdded(rules));
      await apiRequestOrThrow(cluster, `DELETE ${ROLES}/${name}`);
      await until("the role view has no longer the added rule", (rules) => hasOwn(rules) && !hasAdded(rules));
    },
    TEST_OPTIONS,
  );
}

import { waitFor } from "#apiserver/wait-for.js";
import { apiRequest, apiRequestOrThrow, type ApiObject, type Connection } from "../api/api-request.js";
import { openWatch, type WatchClient } from "../api/watch-client.js";
import { createNamespace, PATIENCE } from "./cluster-steps.js";

/** An object of any kind in a response. */
export type AnyObject = ApiObject & { [member: string]: unknown };

const ROOTS: Record<string, string> = {
  deployments: "/apis/apps/v1",
  replicasets: "/apis/apps/v1",
  statefulsets: "/apis/apps/v1",
  daemonsets: "/apis/apps/v1",
  controllerrevisions: "/apis/apps/v1",
  jobs: "/apis/batch/v1",
  cronjobs: "/apis/batch/v1",
  endpointslices: "/apis/discovery.k8s.io/v1",
  poddisruptionbudgets: "/apis/policy/v1",
  horizontalpodautoscalers: "/apis/autoscaling/v2",
};

/** A namespace with the operations that tests of invariants use. Resources are given by their plural names. */
export interface ClusterSpace {
  namespace: string;
  create(plural: string, object: object): Promise<AnyObject>;
  get(plural: string, name: string): Promise<AnyObject | undefined>;
  list(plural: string, selector?: string): Promise<AnyObject[]>;
  /** Opens a watch, whose first events are the objects that exist. */
  watch(plural: string): Promise<WatchClient>;
  patch(plural: string, name: string, body: object): Promise<void>;
  remove(plural: string, name: string, query?: string): Promise<void>;
  /** Evicts a Pod; returns the status code and body of the response. */
  evict(name: string): Promise<{ status: number; body: AnyObject }>;
  /** Sets the phase of a running Pod, as its kubelet would after it has terminated. */
  finish(name: string, phase: "Succeeded" | "Failed"): Promise<void>;
  /** Fails a running Pod with the exit code of its container `web`. */
  fail(name: string, exitCode: number): Promise<void>;
  /** Waits until the predicate is true for an object, and returns it. */
  until(plural: string, name: string, predicate: (object: AnyObject) => boolean): Promise<AnyObject>;
  untilGone(plural: string, name: string): Promise<void>;
  /** Waits until the predicate is true for a list, and returns it. */
  untilList(plural: string, selector: string, predicate: (objects: AnyObject[]) => boolean): Promise<AnyObject[]>;
}

/** Creates a namespace, and waits for its default ServiceAccount, which its Pods need. */
export async function openClusterSpace(cluster: Connection): Promise<ClusterSpace> {
  const namespace = await createNamespace(cluster);
  const pathOf = (plural: string, name?: string) => {
    const scope = plural === "persistentvolumes" || plural === "namespaces" ? "" : `/namespaces/${namespace}`;
    return `${ROOTS[plural] ?? "/api/v1"}${scope}/${plural}${name === undefined ? "" : `/${name}`}`;
  };
  const get: ClusterSpace["get"] = async (plural, name) => {
    const { status, body } = await apiRequest<AnyObject>(cluster, `GET ${pathOf(plural, name)}`);
    return status === 404 ? undefined : body;
  };
  const list: ClusterSpace["list"] = async (plural, selector = "") => {
    const path = `${pathOf(plural)}?labelSelector=${encodeURIComponent(selector)}`;
    return (await apiRequestOrThrow<{ items: AnyObject[] }>(cluster, `GET ${path}`)).items;
  };
  const patchStatus = async (name: string, status: object) => {
    const contentType = "application/merge-patch+json";
    await apiRequestOrThrow(cluster, `PATCH ${pathOf("pods", name)}/status`, { body: { status }, contentType });
  };
  const hasAccount = async () => (await get("serviceaccounts", "default")) !== undefined;
  await waitFor(`${namespace} has the account default`, hasAccount, PATIENCE);
  return {
    namespace,
    get,
    list,
    create: (plural, body) => apiRequestOrThrow<AnyObject>(cluster, `POST ${pathOf(plural)}`, { body }),
    watch: (plural) => openWatch(cluster, `${pathOf(plural)}?watch=true`),
    async patch(plural, name, body) {
      const contentType = "application/merge-patch+json";
      await apiRequestOrThrow(cluster, `PATCH ${pathOf(plural, name)}`, { body, contentType });
    },
    async remove(plural, name, query = "") {
      await apiRequestOrThrow(cluster, `DELETE ${pathOf(plural, name)}${query}`);
    },
    async evict(name) {
      const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } };
      return apiRequest<AnyObject>(cluster, `POST ${pathOf("pods", name)}/eviction`, { body });
    },
    finish: (name, phase) => patchStatus(name, { phase }),
    fail: (name, exitCode) => {
      const image = { image: "nginx:1", imageID: "" };
      const terminated = { exitCode, reason: "Error" };
      const container = { ...image, name: "web", ready: false, restartCount: 0, state: { terminated } };
      return patchStatus(name, { phase: "Failed", containerStatuses: [container] });
    },
    until: (plural, name, predicate) =>
      waitFor(
        `${plural} ${name} is as expected`,
        async () => {
          const object = await get(plural, name);
          return object !== undefined && predicate(object) ? object : undefined;
        },
        PATIENCE,
      ),
    async untilGone(plural, name) {
      await waitFor(`${plural} ${name} is gone`, async () => (await get(plural, name)) === undefined, PATIENCE);
    },
    untilList: (plural, selector, predicate) =>
      waitFor(
        `${plural} are as expected`,
        async () => {
          const objects = await list(plural, selector);
          return predicate(objects) ? objects : undefined;
        },
        { ...PATIENCE, describe: async () => (await list(plural, selector)).map(summaryOf) },
      ),
  };
}

/** What a failed wait says about an object of a list. */
function summaryOf({ metadata, status, reason, message }: AnyObject): string {
  return [metadata.name, status?.["phase"], reason, message].filter((part) => part !== undefined).join(" ");
}

/** Returns a pod template with the label `app`. */
export function podTemplate(
  app: string,
  options: { image?: string; spec?: object; annotations?: object } = {},
): object {
  const { image = "nginx:1", spec = {}, annotations } = options;
  return {
    metadata: { labels: { app }, ...(annotations === undefined ? {} : { annotations }) },
    spec: { containers: [{ name: "web", image, ports: [{ name: "http", containerPort: 80 }] }], ...spec },
  };
}

/** Returns a number in the status of an object. Default: 0 */
export function countIn({ status }: AnyObject, field: string): number {
  return Number(status?.[field] ?? 0);
}

/** Returns `type status reason` for each condition. */
export function conditionsOf({ status }: AnyObject): string[] {
  const conditions = (status?.["conditions"] ?? []) as { type: string; status: string; reason: string }[];
  return conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`);
}

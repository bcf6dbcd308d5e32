// One object that a dependent writes, and another field manager that writes it, too: on the embedded API server or a real one.
import {
  type DecodedResource,
  type JsonPatchOperation,
  type KubernetesObject,
  type ResourceDefinition,
  keyOf,
} from "#runtime/base/kubernetes-object.js";
import { ApiError } from "#runtime/base/errors.js";
import { ApiClient, objectPath } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import type { ManagedEntry } from "#runtime/apply/field-set.js";
import { Sender, readManagedFields } from "#runtime/apply/sender.js";
import type { ApplyResult } from "#runtime/apply/write.js";
import { Writer } from "#runtime/apply/writer.js";
import type { TestApiServer } from "../../../support/api/api-server.js";
import { createView } from "../../../support/runtime/resource-view.js";

/** A write of another field manager. */
export type ForeignWrite =
  { readonly apply: object } | { readonly mergePatch: object } | { readonly jsonPatch: readonly JsonPatchOperation[] };

/** How an object is written. */
export interface WriteOptions {
  readonly released?: readonly string[];
  /** Whether `desired` read the live object, which no other version may replace. */
  readonly readsLive?: boolean;
  /** What the operator was compiled for, if that is not what the API server has. */
  readonly as?: ResourceDefinition;
}

/** What of an object tests read. */
export type AnyObject = KubernetesObject & { readonly [member: string]: never };

let objects = 0;

/** Starts a writer for one object of a kind. */
export async function startWriting(
  server: TestApiServer,
  definition: ResourceDefinition,
  { formerFieldManagers = [] }: { readonly formerFieldManagers?: readonly string[] } = {},
) {
  const connection = { url: server.url, token: server.token, ca: server.ca };
  const requests: string[] = [];
  const logs: string[] = [];
  const client = new ApiClient(createConnection(connection), {
    observe: ({ method, path, status }) =>
      void requests.push(`${path.includes("dryRun=") ? "dry " : ""}${method} ${status ?? "lost"}`),
  });
  const other = new ApiClient(createConnection(connection));
  const createSender = (former = formerFieldManagers) => {
    const fieldManagers = Object.assign(["us"], { former: new Set(former) });
    return new Sender({ client, fieldManager: "us", formerFieldManagers: former, fieldManagers });
  };
  let sender = createSender();
  const { view } = createView();
  const target = { definition, cache: view };
  const metadata = { name: `object-${++objects}`, namespace: "default" };
  const line = (level: string) => (_: object, message: string) => void logs.push(`${level} ${message}`);
  const logger = { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
  const read = async () => (await sender.read(target, metadata)) as DecodedResource<AnyObject> | undefined;
  let writers: { [serverSideApply: string]: Writer } = {};
  const write = async (
    desired: { readonly metadata?: object },
    {
      as = definition,
      serverSideApply = true,
      readsLive = false,
      ...options
    }: WriteOptions & { serverSideApply?: boolean },
  ): Promise<ApplyResult> => {
    const live = await read();
    requests.length = 0;
    logs.length = 0;
    const stated = { ...desired, metadata: { ...metadata, ...desired.metadata } };
    const writer = (writers = { [`${serverSideApply}`]: new Writer(sender, { serverSideApply }), ...writers })[
      `${serverSideApply}`
    ]!;
    return writer.apply({ ...target, definition: as }, stated, {
      ...{ live, cause: { logger }, ...options },
      basis: readsLive ? { version: live?.object.metadata.resourceVersion } : undefined,
    });
  };
  return {
    ...{ read, requests, logs, metadata, client: other, key: keyOf(metadata) },
    apply: (desired: object, options?: WriteOptions) => write(desired, { ...options }),
    put: (desired: object, options?: WriteOptions) => write(desired, { ...options, serverSideApply: false }),
    /** Returns how the object would be deleted to create it again as desired. */
    async replacement(desired: object) {
      requests.length = 0;
      const error = new ApiError(422, { reason: "Invalid", message: "the field is immutable" });
      const primary = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "primary" } };
      const writer = (writers["true"] ??= new Writer(sender));
      return writer.checkReplacement(target, { metadata, ...desired }, { error, cause: { logger, primary } });
    },
    /** Forgets what the process has learnt. */
    restart(settings: { readonly formerFieldManagers?: readonly string[] } = {}) {
      sender = createSender(settings.formerFieldManagers);
      writers = {};
    },
    async others(change: ForeignWrite | undefined, fieldManager = "kubectl-edit") {
      const place = { ...metadata, fieldManager };
      if (change === undefined) return;
      if ("apply" in change) {
        const { metadata: stated, ...content } = change.apply as { readonly metadata?: object };
        await other.apply({ definition }, { ...content, metadata: { ...metadata, ...stated } }, { fieldManager });
      } else if ("mergePatch" in change) await other.mergePatch({ definition }, place, change.mergePatch);
      else await other.jsonPatch({ definition }, place, { fieldManager, operations: change.jsonPatch });
    },
    managers: (): Promise<readonly ManagedEntry[]> => readManagedFields(other, objectPath(definition, metadata)),
    async live(): Promise<AnyObject> {
      return (await read())!.object;
    },
    async specOf(): Promise<unknown> {
      return (await read())!.object["spec"];
    },
    async [Symbol.asyncDispose]() {
      await client.close();
      await other.close();
    },
  };
}

// The ways in which a controller may write, and an object on which to try them.
import type { ApiServer } from "#apiserver/index.js";
import { type Defined, keyOf } from "#runtime/base/kubernetes-object.js";
import type { KindOperations } from "#runtime/apply/resource-operations.js";
import { shared } from "../../../support/suite.js";
import { ConfigMap, Page, startPageServer, type DataObject } from "../page-operator.js";
import { knownIn, startWrittenKinds, type WatchedKind } from "./written-kinds.js";

/** The server of a test file. */
export const server = shared(async (): Promise<ApiServer> => startPageServer());
let names = 0;

/** Returns a name that no object has yet. */
export function newName(): string {
  return `object-${++names}`;
}

/** A way to write an object of the kind: sets its text, or that of its status. */
export interface WayToWrite {
  readonly name: string;
  readonly kind: "page" | "configMap";
  /** The verb of the request, for faults. */
  readonly verb: "update" | "patch";
  readonly isLocking?: boolean;
  write(operations: KindOperations<never>, live: DataObject & Page, text: string, options?: object): Promise<unknown>;
  textOf(object: object): string | undefined;
}

/** What writes an object that may be either. */
export type Operations = KindOperations<DataObject & Page>;
type Write = (ops: Operations, live: DataObject & Page, text: string, options?: object) => Promise<unknown>;

/** Returns the name and namespace of an object. */
export const refOf = ({ metadata: { name, namespace } }: Page) => ({ name, namespace });
const way = (
  kind: WayToWrite["kind"],
  name: string,
  write: Write,
  more: { verb?: "update"; isLocking?: boolean } = {},
): WayToWrite => ({
  name: `${name} of a ${kind === "page" ? "primary" : "secondary"}`,
  kind,
  verb: "patch",
  ...more,
  write: write as unknown as WayToWrite["write"],
  textOf: (object) => {
    const { data, spec, status } = object as Partial<DataObject & Page>;
    return name.includes("Status") ? status?.text : kind === "page" ? spec?.text : data?.["text"];
  },
});

/** Those to write a ConfigMap. */
export const secondaryWays: WayToWrite[] = [
  way("configMap", "apply", (ops, live, text, options) =>
    ops.apply({ metadata: refOf(live), data: { text } }, options),
  ),
  way(
    "configMap",
    "update",
    (ops, live, text, options) => ops.update({ ...live, data: { ...live.data, text } }, options),
    {
      verb: "update",
      isLocking: true,
    },
  ),
  way("configMap", "jsonPatch", (ops, live, text, options) =>
    ops.jsonPatch(live, (draft) => void (draft.data = { ...draft.data, text }), options),
  ),
  way("configMap", "jsonPatch with operations", (ops, live, text, options) =>
    ops.jsonPatch(live, [{ op: "add", path: "/data/text", value: text }], options),
  ),
  way("configMap", "mergePatch", (ops, live, text, options) =>
    ops.mergePatch({ metadata: refOf(live), data: { text } }, options),
  ),
];
/** Those to write a Page. */
export const primaryWays: WayToWrite[] = [
  way("page", "apply", (ops, live, text, options) => ops.apply({ metadata: refOf(live), spec: { text } }, options)),
  way("page", "update", (ops, live, text, options) => ops.update({ ...live, spec: { ...live.spec, text } }, options), {
    verb: "update",
    isLocking: true,
  }),
  way("page", "jsonPatch", (ops, live, text, options) =>
    ops.jsonPatch(live, (draft) => void (draft.spec.text = text), options),
  ),
  way("page", "mergePatch", (ops, live, text, options) =>
    ops.mergePatch({ metadata: refOf(live), spec: { text } }, options),
  ),
  way("page", "applyStatus", (ops, live, text, options) =>
    ops.applyStatus({ metadata: live.metadata, status: { text } }, options),
  ),
  way("page", "updateStatus", (ops, live, text, options) => ops.updateStatus({ ...live, status: { text } }, options), {
    verb: "update",
    isLocking: true,
  }),
  way("page", "jsonPatchStatus", (ops, live, text, options) =>
    ops.jsonPatchStatus(live, (draft) => void (draft.status = { ...draft.status, text }), options),
  ),
  way("page", "mergePatchStatus", (ops, live, text, options) =>
    ops.mergePatchStatus({ metadata: refOf(live), status: { text } }, options),
  ),
];
/** All of them. */
export const ways = [...primaryWays, ...secondaryWays];

/** An object of somebody else's that the controller has seen, and the operations of its kind. */
export async function startWith({ kind }: WayToWrite) {
  const kinds = await startWrittenKinds(await server());
  const metadata = { name: newName(), namespace: "default" };
  const type = (kind === "page" ? Page : ConfigMap) as unknown as Defined<DataObject & Page>;
  await kinds.foreign.create(type, { metadata, spec: { text: "first" }, data: { text: "first" } });
  await kinds.forget();
  const watched: WatchedKind = kind === "page" ? kinds.pages : kinds.configMaps;
  const key = keyOf(metadata);
  return {
    ...kinds,
    key,
    metadata,
    type,
    watched,
    operations: kinds.operations.of(type) as unknown as KindOperations<never>,
    live: () => knownIn<DataObject & Page>(watched, key),
    // A change that no way to write is about.
    writeForeign: (value: string) =>
      kinds.foreign.mergePatch(type, metadata, { metadata: { annotations: { theirs: value } } }),
  };
}

/** States the version of an object in the metadata of what is written. */
export function withVersionOf(each: WayToWrite, { metadata: { resourceVersion } }: Page): WayToWrite {
  return {
    ...each,
    write: (operations, live, text, options) => {
      const target = operations as unknown as Operations;
      const metadata = { ...refOf(live), resourceVersion };
      if (each.name.startsWith("applyStatus")) return target.applyStatus({ metadata, status: { text } }, options);
      if (each.name.startsWith("apply"))
        return target.apply(
          each.kind === "page" ? { metadata, spec: { text } } : { metadata, data: { text } },
          options,
        );
      if (each.name.startsWith("mergePatchStatus"))
        return target.mergePatchStatus({ metadata, status: { text } }, options);
      if (each.name.startsWith("mergePatch"))
        return target.mergePatch(
          each.kind === "page" ? { metadata, spec: { text } } : { metadata, data: { text } },
          options,
        );
      return each.write(operations, live, text, options);
    },
  };
}

import type { ObjectRef } from "../../base/kubernetes-object.js";
import { requesterOf, type ApiClient } from "../../client/api-client.js";
import { objectPath } from "../../client/resource-path.js";
import type { WriteTarget } from "./apply-matcher.js";

interface RivalSearch {
  readonly target: WriteTarget;
  readonly ref: ObjectRef;
  /** Where the object is not as desired: `data.text`. */
  readonly paths: readonly string[];
  readonly own: string;
  readonly signal?: AbortSignal | undefined;
}

/** Returns the field managers that own what differs in an object; none if nobody does, or if that cannot be read now. */
export async function findRivals(
  client: ApiClient,
  { target, ref, paths, own, signal }: RivalSearch,
): Promise<readonly string[]> {
  try {
    const path = objectPath(target.definition, ref);
    const { body } = await requesterOf(client).send({ method: "GET", path, ...(signal && { signal }) });
    const { metadata } = JSON.parse(body.toString("utf8")) as {
      metadata: { managedFields?: { manager?: string; fieldsV1?: object }[] };
    };
    // Up to the first item of a list, which managed fields name by its keys.
    const names = paths.map((each) => each.replace(/\[.*$/, "").split("."));
    const rivals = (metadata.managedFields ?? []).flatMap(({ manager, fieldsV1 = {} }) =>
      manager !== own && names.some((each) => owns(fieldsV1, each)) ? (manager ?? []) : [],
    );
    return [...new Set(rivals)];
  } catch {
    // Without it the message says less, and nothing else is different.
    return [];
  }
}

function owns(fields: object, [name, ...rest]: readonly string[]): boolean {
  if (name === undefined) return true;
  const inner = (fields as { readonly [key: string]: object | undefined })[`f:${name}`];
  return inner !== undefined && (Object.keys(inner).length === 0 || owns(inner, rest));
}

import type { DeleteOptions } from "../decode/options/delete-options.js";
import type { ListOptions } from "../decode/options/list-options.js";
import { StatusError } from "../errors/status-error.js";
import { stringAt } from "../json.js";
import { metadataOf } from "../object/object-meta.js";
import { prepareList, type ListResult } from "../read/list.js";
import { settled } from "../pending-conversion.js";
import { setImmediate } from "../real-time.js";
import { deleteObject, warnOfOrphans } from "./delete.js";
import type { WriteContext } from "./write-context.js";

const SLICE = 100;

/** Deletes what a list returns, and returns that list: the objects as they were before. */
export async function deleteCollection(
  context: WriteContext,
  options: { deletion: DeleteOptions; list: ListOptions },
): Promise<ListResult> {
  const { resource, namespace } = context;
  const list = await settled(prepareList(resource, { ...options.list, namespace }));
  warnOfOrphans(context, options.deletion);
  for (const [index, { object }] of list.items.entries()) {
    // Others are answered in between.
    if (index > 0 && index % SLICE === 0) await new Promise((resolve) => setImmediate(resolve));
    const metadata = metadataOf(object);
    const of = { ...context, namespace: stringAt(metadata, "namespace") };
    await deleteUnlessGone(of, stringAt(metadata, "name") ?? "", options.deletion);
  }
  return list;
}

async function deleteUnlessGone(context: WriteContext, name: string, options: DeleteOptions): Promise<void> {
  try {
    await deleteObject(context, name, { ...options, isOfCollection: true });
  } catch (error) {
    if (!(error instanceof StatusError) || error.status.code !== 404) throw error;
  }
}

import type { AdmittedWrite } from "../../admission/admission.js";
import { parseConnectOptions } from "../../decode/options/connect-options.js";
import type { JsonObject } from "../../json.js";
import { partResource } from "./part-resource.js";
import type { WriteContext } from "../write-context.js";

/** The kinds of options of connections to Pods by subresource. */
const KINDS: Record<string, string> = {
  exec: "PodExecOptions",
  attach: "PodAttachOptions",
  portforward: "PodPortForwardOptions",
};

/** True for the subresources of Pods that are connections. */
export function isConnection(subresource: string): boolean {
  return Object.hasOwn(KINDS, subresource);
}

/** Returns the options of a connection as admission changes them, once nobody refuses it. */
export async function admitConnection(
  context: WriteContext,
  { name, subresource, query }: { name: string; subresource: string; query: URLSearchParams },
): Promise<JsonObject> {
  const kind = KINDS[subresource] as string;
  const of = { group: "", version: "v1", kind, schemaName: `io.k8s.api.core.v1.${kind}` };
  const part = partResource(of, context.resource);
  const object = parseConnectOptions(of, query);
  part.rules.fillDefaults(object);
  const write: AdmittedWrite = { context, operation: "CONNECT", name, subresource, part, object };
  const mutated = (await context.admission?.mutate(write)) ?? object;
  await context.admission?.validate({ ...write, object: mutated });
  return mutated;
}

import { readFileSync } from "node:fs";
import { schemaNameOf } from "../builtin/schemas.js";
import { packageFile } from "../package-file.js";

const MESSAGES_FILE = packageFile("data/kubernetes-1.36-protobuf.json");
const DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/**
 * A message: by field number the name and type of each field. `list` and `map` stand before the type of their values, `inline` before that of
 * a message whose fields belong to the outer one in JSON.
 */
export type Message = Readonly<Record<string, string>>;

let memoisedMessages: Readonly<Record<string, Message>> | undefined;

/** Gives the message of a name such as `io.k8s.api.core.v1.Pod`. */
export function messageOf(name: string): Message | undefined {
  memoisedMessages ??= JSON.parse(readFileSync(MESSAGES_FILE, "utf8")) as Readonly<Record<string, Message>>;
  return Object.hasOwn(memoisedMessages, name) ? memoisedMessages[name] : undefined;
}

/** Gives the name of the message of a kind; undefined for a kind that is not built in. */
export function messageNameOf(apiVersion: string, kind: string): string | undefined {
  // Clients name it by the group of what they delete.
  if (kind === "DeleteOptions") return DELETE_OPTIONS;
  const slash = apiVersion.indexOf("/");
  const group = slash === -1 ? "" : apiVersion.slice(0, slash);
  const name = schemaNameOf({ group, version: apiVersion.slice(slash + 1), kind });
  return name === undefined || messageOf(name) === undefined ? undefined : name;
}

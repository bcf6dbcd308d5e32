import { createHash } from "node:crypto";
import { isApiError } from "../base/errors.js";
import type { KubernetesObject, ObjectRef } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { ApiClient } from "../client/api-client.js";

/** Something about an object that is worth telling whoever looks at it with `kubectl describe`. */
export interface EventContent {
  /** Who tells it: the name of the controller. */
  readonly component: string;
  readonly about: KubernetesObject;
  readonly type: "Normal" | "Warning";
  /** One word in upper camel case. */
  readonly reason: string;
  readonly message: string;
  /** What tells it from others of the same reason about the same object; those are counted as one. */
  readonly subject: string;
}

interface EventObject extends KubernetesObject {
  readonly count?: number;
  readonly [member: string]: unknown;
}

// Of the core group: every tool reads these, and the API server shows them in events.k8s.io, too.
const definition: ResourceDefinition<EventObject> = {
  group: "",
  version: "v1",
  kind: "Event",
  plural: "events",
  scope: "Namespaced",
  apiVersion: "v1",
  hasStatusSubresource: false,
  isCustom: false,
  schema: {},
};

// The API server takes no more in a message.
const MESSAGE_LENGTH = 1024;

/** Writes an Event about an object, or counts one more of the Event that says the same; throws what the API server answers. */
export async function writeEvent(client: ApiClient, content: EventContent): Promise<void> {
  const ref = refOf(content);
  const event = { definition };
  const news = { message: content.message.slice(0, MESSAGE_LENGTH), lastTimestamp: timestamp() };
  const known = await client.get(event, ref);
  if (known !== undefined) {
    await client.mergePatch(event, ref, { ...news, count: (known.count ?? 1) + 1 } as never);
    return;
  }
  try {
    await client.create(event, { ...newEvent(content, ref), ...news } as never);
  } catch (error) {
    // Somebody else was faster, and says the same.
    if (!isApiError(error, 409)) throw error;
  }
}

function newEvent({ component, about, type, reason }: EventContent, ref: ObjectRef): object {
  const { apiVersion, kind } = about;
  const { name, namespace, uid, resourceVersion } = about.metadata;
  return {
    metadata: ref,
    involvedObject: { apiVersion, kind, name, namespace, uid, resourceVersion },
    type,
    reason,
    source: { component },
    reportingComponent: component,
    reportingInstance: "",
    firstTimestamp: timestamp(),
    count: 1,
  };
}

// Named after what it says, so that saying it again finds it.
function refOf({ component, about, reason, subject }: EventContent): ObjectRef & { namespace: string } {
  const { name, namespace = "default", uid = "" } = about.metadata;
  const digest = createHash("sha1").update([component, uid, reason, subject].join("\n")).digest("hex").slice(0, 16);
  return { name: `${name}.${digest}`, namespace };
}

function timestamp(): string {
  return new Date().toISOString().replace(/\.\d+Z$/, "Z");
}

import { createHash } from "node:crypto";
import { timestampOf } from "../base/clock.js";
import { isApiError } from "../base/errors.js";
import type { KubernetesObject, ObjectRef } from "../base/kubernetes-object.js";
import { messageOf, type Logger } from "../base/logger.js";
import { coreKindOf } from "../base/resource-definition.js";
import type { ApiClient } from "../client/api-client.js";

/** What somebody who looks at an object with `kubectl describe` is to be warned of. */
export interface EventContent {
  /** Who tells it: the name of the controller. */
  readonly component: string;
  readonly about: KubernetesObject;
  /** One word in upper camel case. */
  readonly reason: string;
  readonly message: string;
  /** What tells it from others of the same reason about the same object; those are counted as one. */
  readonly subject: string;
}

/** Where Events are written, and who is told of a failure. */
export interface EventTarget {
  readonly client: Pick<ApiClient, "get" | "create" | "mergePatch">;
  readonly logger: Logger;
  readonly fields: object;
}

interface EventObject extends KubernetesObject {
  readonly count?: number;
  readonly [member: string]: unknown;
}

// Of the core group: every tool reads these, and the API server shows them in events.k8s.io, too.
const event = { definition: coreKindOf<EventObject>("Event", "events") };

// The API server takes no more in a message.
const MESSAGE_LENGTH = 1024;

/** Writes an Event about an object, or counts one more of the Event that says the same; never throws. */
export async function writeEvent({ client, logger, fields }: EventTarget, content: EventContent): Promise<void> {
  const { component, about, reason } = content;
  const { name, namespace, uid, resourceVersion } = about.metadata;
  const ref = refOf(content);
  const lastTimestamp = timestampOf(new Date());
  const news = { message: content.message.slice(0, MESSAGE_LENGTH), lastTimestamp };
  try {
    const known = await client.get(event, ref);
    if (known !== undefined) {
      await client.mergePatch(event, ref, { ...news, count: (known.count ?? 1) + 1 } as never);
      return;
    }
    await client.create(event, {
      ...news,
      metadata: ref,
      involvedObject: { apiVersion: about.apiVersion, kind: about.kind, name, namespace, uid, resourceVersion },
      type: "Warning",
      reason,
      source: { component },
      reportingComponent: component,
      reportingInstance: "",
      firstTimestamp: lastTimestamp,
      count: 1,
    } as never);
  } catch (error) {
    // Somebody else was faster, and says the same.
    if (isApiError(error, 409)) return;
    // What is missing is most likely the permission; the line in the log has said it all.
    logger.debug(fields, `no Event could be written about it: ${messageOf(error)}`);
  }
}

// Named after what it says, so that saying it again finds it.
function refOf({ component, about, reason, subject }: EventContent): ObjectRef & { namespace: string } {
  const { name, namespace = "default", uid = "" } = about.metadata;
  const digest = createHash("sha1").update([component, uid, reason, subject].join("\n")).digest("hex").slice(0, 16);
  return { name: `${name}.${digest}`, namespace };
}

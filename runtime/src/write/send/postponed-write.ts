import { EXTERNAL_KIND, type ChangedPaths, type PostponedWrite, type WrittenFor } from "../../base/activity.js";
import { RetryAfterError } from "../../base/errors.js";
import type { KubernetesObject } from "../../base/kubernetes-object.js";
import type { Logger } from "../../base/logger.js";
import { CONTROLLER_LABEL } from "../../base/primary-link.js";
import type { DecodedResource } from "../../base/decoded-resource.js";
import type { Application } from "./apply-matcher.js";

/** A write of an object, or of its status. */
export interface OwnWrite {
  readonly part: Application["part"];
  readonly fieldManager: string;
  /** Absent if the client of the user wrote the primary. */
  readonly answer?: DecodedResource;
}

/** For what a write is made. */
export interface WriteCause extends WrittenFor {
  /** Cancels the write when its step, or its reconcile, is given up. */
  readonly signal?: AbortSignal | undefined;
  /** Gets a line for every write that changed something. */
  readonly logger?: Logger | undefined;
  /** Whether somebody else changed a secondary resource before: a status may follow that more often than a write may repeat. */
  readonly followsEvent?: boolean;
  /** Told of every write that changed an object; to ask where, with the most paths that are wanted, costs as much as the match did. */
  readonly onChange?: ((pathsOf: ChangedPaths) => void) | undefined;
  /** What the write says, where its content is another one each time because of the time in it. Default: the content */
  readonly statement?: object | undefined;
  /** Told of every write. */
  readonly onWritten?: ((write: OwnWrite) => void) | undefined;
  /** Told of a write that is given up, and that may create its object later all the same. */
  readonly onGivenUp?: (() => void) | undefined;
}

/** For which primary a write is made. */
export type PrimaryCause = WriteCause & { readonly primary: KubernetesObject };

/** Says in one sentence what is postponed, and why. */
export function describePostponed({ kind, object, loop, paths, managers, writes }: PostponedWrite): string {
  const what = paths.length === 0 ? "" : ` (${paths.join(", ")})`;
  const who =
    managers.length === 0
      ? "somebody, another primary or an admission policy"
      : managers.map((name) => `"${name}"`).join(" and ");
  const why =
    loop === "unsettled"
      ? "another content was desired each time"
      : kind === EXTERNAL_KIND
        ? "the service, or somebody, undoes it each time"
        : paths.length === 0
          ? // Either looks the same to a watch that selects the label.
            `it is deleted, or loses its label ${CONTROLLER_LABEL}, again and again`
          : `${who} undoes it each time`;
  return `${kind} ${object}${what} was written ${writes} times, and ${why}; it is written less and less often`;
}

/** Creates the error of a step that cannot go on without a write that is postponed. */
export function createPostponedError(postponed: PostponedWrite): RetryAfterError {
  const { retryAfterMs } = postponed;
  const message = `${describePostponed(postponed)}, next in ${Math.ceil(retryAfterMs / 1000)} s`;
  return Object.assign(new RetryAfterError(message, retryAfterMs), { postponed });
}

/** Returns the write that an error is about, if it was postponed. */
export function findPostponed(error: unknown): PostponedWrite | undefined {
  return (error as { readonly postponed?: PostponedWrite }).postponed;
}

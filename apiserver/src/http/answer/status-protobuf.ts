// A Status in protobuf, in the envelope of Kubernetes: what clients of Go ask for first, and get for failures.
import { MAGIC } from "../../decode/protobuf.js";
import type { Status, StatusDetails } from "../../errors/status-error.js";
import { delimited, integerField, textField } from "../../protobuf-writer.js";

// selfLink, resourceVersion and continue.
const LIST_META = [1, 2, 3].flatMap((number) => textField(number, ""));

/** Writes a Status as Go writes it: texts that are empty, too. */
export function statusProtobuf({ kind, apiVersion, ...status }: Status): Buffer {
  const typeMeta = [...textField(1, apiVersion), ...textField(2, kind)];
  const fields = [
    ...delimited(1, LIST_META),
    ...textField(2, status.status),
    ...textField(3, status.message ?? ""),
    ...textField(4, status.reason ?? ""),
    ...(status.details === undefined ? [] : delimited(5, detailsOf(status.details))),
    ...integerField(6, status.code),
  ];
  // The encoding and the type of the content are empty.
  const envelope = [...delimited(1, typeMeta), ...delimited(2, fields), ...textField(3, ""), ...textField(4, "")];
  return Buffer.concat([MAGIC, ...envelope]);
}

function detailsOf(details: StatusDetails): Buffer[] {
  const causes = details.causes ?? [];
  return [
    ...textField(1, details.name ?? ""),
    ...textField(2, details.group ?? ""),
    ...textField(3, details.kind ?? ""),
    ...causes.flatMap(({ reason, message, field }) =>
      delimited(4, [...textField(1, reason ?? ""), ...textField(2, message ?? ""), ...textField(3, field ?? "")]),
    ),
    ...integerField(5, details.retryAfterSeconds ?? 0),
    ...textField(6, details.uid ?? ""),
  ];
}

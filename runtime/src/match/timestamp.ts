// https://www.rfc-editor.org/rfc/rfc3339#section-5.6, as Go reads it
const TIMESTAMP = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:[.,](\d+))?(Z|[+-]\d{2}:\d{2})$/;

/**
 * Tells whether a time is stored as `live` by the API server: in UTC, of a Time the whole seconds, and of a MicroTime, which always has a
 * fraction, the microseconds.
 */
export function isSameTime(desired: string, live: string): boolean {
  const [wanted, stored] = [TIMESTAMP.exec(desired), TIMESTAMP.exec(live)];
  if (wanted === null || stored === null || secondsOf(wanted) !== secondsOf(stored)) return false;
  const fraction = stored[2];
  // A MicroTime without all of its six digits is refused.
  return fraction === undefined || wanted[2] === fraction;
}

function secondsOf([, local, , zone]: RegExpExecArray): number {
  return Date.parse(`${local}${zone}`);
}

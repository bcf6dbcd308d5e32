/** Whether a text names a time zone of the IANA database, in its capital and small letters. */
export function isTimeZone(zone: string): boolean {
  try {
    const own = new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone;
    // Of another name of a zone only its own name is known, but every name begins with a capital.
    return own.toLowerCase() === zone.toLowerCase() ? own === zone : /^[A-Z]/.test(zone);
  } catch {
    return false;
  }
}

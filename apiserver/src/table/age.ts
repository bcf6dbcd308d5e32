/** Formats a duration as kubectl does: `5s`, `2m3s`, `3h`, `2d4h`, `1y20d`. */
export function humanDuration(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1000);
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return withRest(`${minutes}m`, seconds % 60, "s");
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return withRest(`${hours}h`, minutes % 60, "m");
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  if (days < 8) return withRest(`${days}d`, hours % 24, "h");
  if (days < 2 * 365) return `${days}d`;
  const years = Math.floor(days / 365);
  return years < 8 ? withRest(`${years}y`, days % 365, "d") : `${years}y`;
}

function withRest(text: string, rest: number, unit: string): string {
  return rest === 0 ? text : `${text}${rest}${unit}`;
}

/** Formats the age of a timestamp; `<unknown>` if it is absent. */
export function ageOf(timestamp: unknown, now: Date): string {
  if (typeof timestamp !== "string" || timestamp === "") return "<unknown>";
  return humanDuration(now.getTime() - Date.parse(timestamp));
}

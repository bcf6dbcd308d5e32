import { existsSync, readFileSync } from "node:fs";
import { SourceMap, type SourceMapPayload } from "node:module";
import { dirname, resolve } from "node:path";

/**
 * Replaces positions in compiled files, as in stack traces, by positions in their sources.
 *
 * Node.js does the same with --enable-source-maps, but then reads the source maps of all loaded files, even if nothing fails.
 */
export function atSources(text: string): string {
  const maps = new Map<string, SourceMap | undefined>();
  return text.replace(/(?:file:\/\/)?(\/[^\s():]+\.js):(\d+):(\d+)/g, (position, file: string, line, column) => {
    if (!maps.has(file)) maps.set(file, readMap(file));
    const entry = maps.get(file)?.findEntry(Number(line) - 1, Number(column) - 1);
    if (entry === undefined || !("originalSource" in entry)) return position;
    const { originalSource, originalLine, originalColumn } = entry;
    return `${resolve(dirname(file), originalSource)}:${originalLine + 1}:${originalColumn + 1}`;
  });
}

function readMap(file: string): SourceMap | undefined {
  const map = `${file}.map`;
  if (!existsSync(map)) return undefined;
  return new SourceMap(JSON.parse(readFileSync(map, "utf8")) as SourceMapPayload);
}

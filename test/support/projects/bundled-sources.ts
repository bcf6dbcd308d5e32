/** Returns the paths of the source files in a bundle. esbuild writes a comment with the path above the code of each file. */
export function bundledSources(program: string): string[] {
  return [...program.matchAll(/^\/\/ (\S+\.[cm]?[jt]s)$/gm)].map(([, path]) => path!);
}

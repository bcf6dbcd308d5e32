/** Returns the paths of the files whose code is in a file of a bundle: esbuild names each one above its code. */
export function bundledSources(program: string): string[] {
  return [...program.matchAll(/^\/\/ (\S+\.[cm]?[jt]s)$/gm)].map(([, path]) => path!);
}

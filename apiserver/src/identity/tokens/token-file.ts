import { readFile } from "node:fs/promises";

/** A user with a token that does not change. */
export interface StaticUser {
  readonly name: string;
  readonly token: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
}

/**
 * Reads users in the form of kube-apiserver's `--token-auth-file`: lines of `token,user,uid,"group1,group2"`.
 *
 * @throws with the number of a line that has too few columns.
 */
export async function readTokenFile(file: string): Promise<StaticUser[]> {
  const text = await readFile(file, "utf8");
  return text.split(/\r?\n/).flatMap((line, index) => {
    if (line.trim() === "") return [];
    const [token = "", name = "", uid = "", groups = "", ...more] = columnsOf(line);
    if (token === "" || name === "")
      throw new Error(`${file}:${index + 1}: expected the columns token, user name, user uid and, in quotes, groups`);
    const listed = [groups, ...more].flatMap((group) => group.split(",")).filter((group) => group !== "");
    return [{ token, name, ...(uid === "" ? {} : { uid }), groups: listed }];
  });
}

// RFC 4180, but for line breaks in quotes.
function columnsOf(line: string): string[] {
  const columns = line.matchAll(/(?:^|,)\s*(?:"((?:[^"]|"")*)"|([^,]*))/g);
  return [...columns].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain?.trim() ?? "");
}

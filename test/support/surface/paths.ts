// The paths of pages and examples, which pages, messages, generated files, and bookmarks link to.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join, posix } from "node:path";
import { repositoryRoot } from "../repository.js";

/** The paths that users may link to, which excludes sources and tests. */
const PUBLIC =
  /^(?:README\.md|CONTRIBUTING\.md|[\w-]+\/(?:README\.md|RESULTS\.md|docs\/.*)|fixtures\/samples\/.*|test\/\w+\.md)$/;

/** A relative link of a page. */
export interface Link {
  readonly page: string;
  /** The path relative to the repository, without the fragment. */
  readonly target: string;
}

/** Returns the relative links of all pages. */
export function linksOfPages(): Link[] {
  return pages().flatMap((page) => {
    const text = readFileSync(join(repositoryRoot, page), "utf8");
    return [...text.matchAll(/\]\((?!\w+:|#)([^)#\s]+)/g)].map(([, path = ""]) => ({
      page,
      target: posix.join(posix.dirname(page), path).replace(/\/$/, ""),
    }));
  });
}

/** Returns the links with a missing target. */
export function brokenLinks(): string[] {
  return linksOfPages()
    .filter(({ target }) => !existsSync(join(repositoryRoot, target)))
    .map(({ page, target }) => `${page}: ${target}`);
}

/** Returns the pages, the examples, and all other targets of links. */
export function pathsReport(): string {
  const examples = readdirSync(join(repositoryRoot, "fixtures/samples")).sort();
  const isPage = new Set(pages());
  const others = linksOfPages()
    .map(({ target }) => target)
    .filter((target) => PUBLIC.test(target) && !isPage.has(target));
  return [
    ...["## pages", "", ...isPage, ""],
    ...["## examples: fixtures/samples, and examples of the package of templates", "", ...examples, ""],
    ...["## what pages link to besides", "", ...[...new Set(others)].sort(), ""],
  ].join("\n");
}

function pages(): string[] {
  const folders = readdirSync(repositoryRoot, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== "node_modules" && !entry.name.startsWith("."))
    .map(({ name }) => name);
  const guides = folders.flatMap((name) => {
    const docs = join(repositoryRoot, name, "docs");
    return existsSync(docs) ? readdirSync(docs).map((file) => `${name}/docs/${file}`) : [];
  });
  const samples = readdirSync(join(repositoryRoot, "fixtures/samples")).map(
    (name) => `fixtures/samples/${name}/README.md`,
  );
  const readmes = ["README.md", "CONTRIBUTING.md", ...folders.map((name) => `${name}/README.md`), ...samples];
  return [...readmes.filter((path) => existsSync(join(repositoryRoot, path))), ...guides]
    .filter((path) => path.endsWith(".md"))
    .sort();
}

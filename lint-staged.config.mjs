// Before a commit: format, lint and types of the changed files, in about a second. `npm run check` does the same for the whole tree.
export default {
  '*': 'oxfmt --no-error-on-unmatched-pattern',
  '*.{ts,tsx,mjs}': 'oxlint --type-aware --type-check --tsconfig tsconfig.json --deny-warnings --no-error-on-unmatched-pattern',
};

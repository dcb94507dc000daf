// Before a commit: format, lint and types of what changes, in a few seconds. `npm run check` also lints with types.
export default {
  '*': 'oxfmt --no-error-on-unmatched-pattern',
  '*.{ts,tsx,mjs}': 'oxlint --deny-warnings --no-error-on-unmatched-pattern',
  // The whole tree, from the result of the last time: a change may break another file.
  '*.{ts,tsx}': () => 'tsc --noEmit',
};

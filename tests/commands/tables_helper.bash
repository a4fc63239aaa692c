load ../helper

# Two processes with events of all kinds, for make_trace.
example() {
  cat <<'END'
process 100 prog -x
0 1000 malloc size=32 result=0x1000 usable=40
0 2000 thread.create value=1
1 2500 thread.start value=0 text=worker
1 3000 calloc size=48 count=3 result=0x2000
1 4000 free ptr=0x1000
0 5000 realloc.begin ptr=0x2000
0 5100 realloc size=96 result=0x3000
0 5200 posix_memalign size=96 align=64 result=0x4000
0 5300 malloc size=99999999999 error=12
0 5400 mark text=h"e,re
0 6000 free ptr=0x3000
0 6100 free ptr=0x9000
1 7000 thread.end
sample 7500 4096
process 200 second
0 8000 new[](nothrow) size=32 result=0x1000
0 9000 delete[](size) size=32 ptr=0x1000
end
END
}

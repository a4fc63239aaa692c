# gdalwarp with two threads.
programs=gdalwarp
packages=gdal-bin
licence=MIT

run() {
  image 600 "$(part 6000)" >input.ppm
  record gdalwarp -q -multi -wo NUM_THREADS=2 -wm 1 -to SRC_METHOD=NO_GEOTRANSFORM \
    -to DST_METHOD=NO_GEOTRANSFORM -ts 900 900 -r cubic input.ppm output.tif
}
